//! One cache of the registry.

use std::{
    any::Any,
    sync::{Arc, Mutex, PoisonError},
};

use kruise_api::path::segment;
use kruise_plan_kit::ResourceId;
use kube_cache::{Delta, Index, ObjectKey, SharedInformer, Version};
use tokio::{sync::Notify, task::JoinSet};

use super::{CacheId, Following, Held, Reach};
use crate::{
    follow::{FirstList, Scope, follow},
    freshness::Followed,
};

/// A cache without the type of its objects.
pub(super) trait Entry: Any + Send + Sync {
    fn name(&self) -> &'static str;
    fn resource(&self) -> ResourceId;
    fn before(&self) -> &'static [&'static str];
    /// Version of the last accepted list; `None` until the first.
    fn synced_version(&self) -> Option<Version>;
    /// Newest observed version.
    fn observed(&self) -> Option<Version>;
    /// Whether an object with this uid is cached and not terminating.
    fn present(&self, uid: &str) -> bool;
    /// Version of the object under this key, if it has this uid.
    fn version(&self, key: &ObjectKey, uid: &str) -> Option<Version>;
    /// What is listed and watched; `None` if the resource is not served.
    fn scope(&self, following: &Following<'_>) -> Option<Scope>;
    /// Lists and watches the scope in a new task.
    fn follow(&self, scope: Scope, following: &Following<'_>, tasks: &mut JoinSet<()>) -> Followed;
}

type Handler<T> = Box<dyn FnMut(&Delta<T>) + Send>;

/// A cache of objects of one type.
pub(super) struct Typed<T: 'static> {
    id: CacheId<T>,
    by_uid: Index<T>,
    pub(super) informer: SharedInformer<T>,
    /// Moved into the task of the watch.
    handlers: Mutex<Vec<Handler<T>>>,
}

impl<T: Held> Typed<T> {
    pub(super) fn new(id: &CacheId<T>) -> Self {
        let by_uid = Index::new("uid", |object: &T| vec![object.uid().into()]);
        let indexes = id.indexes.iter().copied().chain([by_uid]);
        Self {
            informer: SharedInformer::new(indexes),
            id: CacheId { ..*id },
            by_uid,
            handlers: Mutex::default(),
        }
    }

    pub(super) fn add(&self, handler: Handler<T>) {
        let mut handlers = self.handlers.lock().unwrap_or_else(PoisonError::into_inner);
        handlers.push(handler);
    }
}

impl<T: Held> Entry for Typed<T> {
    fn name(&self) -> &'static str {
        self.id.name
    }

    fn resource(&self) -> ResourceId {
        self.id.resource
    }

    fn before(&self) -> &'static [&'static str] {
        self.id.before
    }

    fn synced_version(&self) -> Option<Version> {
        self.informer.synced_version()
    }

    fn observed(&self) -> Option<Version> {
        self.informer.observed()
    }

    fn present(&self, uid: &str) -> bool {
        let found = self.informer.snapshot().by_index(&self.by_uid, uid);
        found.iter().any(|object| !object.is_terminating())
    }

    fn version(&self, key: &ObjectKey, uid: &str) -> Option<Version> {
        let object = self.informer.snapshot().get(key)?;
        (object.uid() == uid).then(|| Version::of(&*object))?
    }

    fn scope(&self, following: &Following<'_>) -> Option<Scope> {
        let namespace = match self.id.reach {
            Reach::Watched => following.namespace,
            Reach::Cluster => None,
            Reach::Own => Some(following.own_namespace),
        };
        let selectors = [
            ("labelSelector", self.id.selector),
            ("fieldSelector", self.id.fields),
        ];
        let selectors = selectors.into_iter().filter(|(_, selector)| !selector.is_empty());
        let selectors: Vec<String> = selectors
            .map(|(name, selector)| format!("{name}={}", segment(selector)))
            .collect();
        Some(Scope {
            path: following.served.collection(self.id.resource, namespace).ok()?,
            selector: (!selectors.is_empty()).then(|| selectors.join("&")),
            form: self.id.form,
            first: if self.id.is_streamed {
                FirstList::Streamed
            } else {
                FirstList::Paged
            },
        })
    }

    fn follow(&self, scope: Scope, following: &Following<'_>, tasks: &mut JoinSet<()>) -> Followed {
        let (client, informer) = (following.client.clone(), self.informer.clone());
        let (jitter, stop) = (following.jitter.clone(), following.stop.clone());
        let refresh = Arc::new(Notify::new());
        let followed = Followed::new(scope.clone(), informer.clone(), refresh.clone());
        let mut handlers = std::mem::take(&mut *self.handlers.lock().unwrap_or_else(PoisonError::into_inner));
        let on_delta = move |delta: Delta<T>| handlers.iter_mut().for_each(|handler| handler(&delta));
        tasks.spawn(async move {
            follow(&client, &scope, &informer, &refresh, on_delta, || jitter(), stop).await;
        });
        followed
    }
}
