//! NodeImage: the registration of its controller, and the reconciler. A key is the name of a node.

mod keys;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use go_compat::flags::Kind as Type;
use jiff::Timestamp;
use kruise_api::{
    imagepulljob,
    nodeimage::{KIND, ObjectReference, SecretReference},
};
use kruise_frame::{
    caches::NODES,
    flags::flag,
    registration::{Controls, Grant, Registration, Setup, Wiring},
};
use kruise_plan_kit::{Memory, ResourceId, events};
use kruise_plan_nodes::nodeimage::{Jobs, Options, Owner, Secrets, Snapshot, plan};
use kruise_runtime::{
    Served,
    events::ObjectRef,
    metrics::objects::Spec,
    worker::{Outcome, Reconciler},
};
use kruise_views::{NodeView, SecretView};
use kube_cache::{ObjectKey, SharedInformer};

use super::images::{
    CachedNodeImage, CachedPullJob, IMAGE_PULL_JOBS, NODE_IMAGES, NODE_IMAGES_BY_OWNER, SECRETS,
};
use kruise_runtime::invalid_spec;

/// The controller.
pub static REGISTRATION: Registration = Registration::of::<NodeImages>("nodeimage-controller", 3)
    .reconciles(&KIND, "nodeimage-workers", "NodeImages handled side by side")
    .reviewed(&kruise_admission::kinds::nodeimage::WEBHOOKS)
    .emits(&[&[&events::PULL_IMAGE_FAILED]])
    .gated(&["KruiseDaemon"])
    .flagged(&[flag(
        CREATION_DELAY,
        Type::Duration,
        "30s",
        "how long a node must have been ready before it gets a NodeImage",
    )])
    .watching(&[ResourceId::NODES, kruise_api::imagepulljob::RESOURCE])
    .granted(&[
        Grant::on(kruise_api::nodeimage::RESOURCE, &["create", "delete", "patch"]),
        Grant::on(ResourceId::SECRETS, &[]).with(&[PULL_JOBS]),
    ])
    .measured(&OVERDUE, &[]);

/// Flag: how long a node must have been ready.
const CREATION_DELAY: &str = "nodeimage-creation-delay";
/// The feature gate that grants the rights on secrets.
const PULL_JOBS: &str = "ImagePullJobGate";

const OVERDUE: Spec = Spec::overdue_writes("nodeimage_expectation_leakage");

/// Reconciles the NodeImage of one node from the caches.
pub struct NodeImages {
    images: SharedInformer<CachedNodeImage>,
    nodes: SharedInformer<NodeView>,
    wanted_by: WantedBy,
    served: Arc<Served>,
    options: Options,
}

impl Controls for NodeImages {
    fn new(setup: &mut Setup<'_>) -> Self {
        let delay = setup.parts.config.duration_flag(CREATION_DELAY);
        let watches_jobs = setup
            .parts
            .served
            .version(kruise_api::imagepulljob::RESOURCE)
            .is_some();
        let namespace = setup.parts.config.namespace.clone();
        let secrets = setup.cache_with(PULL_JOBS, &SECRETS);
        let secrets = setup.allows(PULL_JOBS, ResourceId::SECRETS).then_some(secrets);
        let jobs = setup.cache(&IMAGE_PULL_JOBS);
        Self {
            images: setup.indexed(&NODE_IMAGES, &[NODE_IMAGES_BY_OWNER]),
            nodes: setup.cache(&NODES),
            wanted_by: WantedBy {
                jobs: watches_jobs.then_some(jobs),
                namespace,
                secrets,
            },
            served: setup.parts.served.clone(),
            options: Options {
                creation_delay: Duration::try_from(delay).unwrap_or_default(),
            },
        }
    }

    fn wire(wiring: &mut Wiring<'_, Self>) {
        wiring.primary(&NODE_IMAGES);
        wiring.maps(&NODES, |this, delta| {
            keys::of_node(delta, &|name| {
                this.images.snapshot().get(&ObjectKey::new("", name)).is_some()
            })
        });
        wiring.maps(&IMAGE_PULL_JOBS, |this, delta| {
            keys::of_job(delta, &|uid| {
                this.images.snapshot().by_index(&NODE_IMAGES_BY_OWNER, uid)
            })
        });
    }
}

/// What images are wanted by, and pulled with.
struct WantedBy {
    /// The jobs, if they are served.
    jobs: Option<SharedInformer<CachedPullJob>>,
    /// The only namespace that is watched, if it is one.
    namespace: Option<String>,
    /// The secrets, if the manager may watch them.
    secrets: Option<SharedInformer<SecretView>>,
}

impl WantedBy {
    fn is_watched(&self, namespace: &str) -> bool {
        self.namespace
            .as_deref()
            .is_none_or(|watched| watched == namespace)
    }
}

impl Jobs for WantedBy {
    fn owner(&self, reference: &ObjectReference) -> Owner {
        let is_known = self.is_watched(&reference.namespace) && reference.is_of(&imagepulljob::KIND);
        let jobs = self.jobs.as_ref().filter(|_| is_known);
        let Some(jobs) = jobs else { return Owner::Unknown };
        let key = ObjectKey::new(reference.namespace.as_str(), reference.name.as_str());
        let job = jobs.snapshot().get(&key);
        match job.filter(|job| job.metadata.uid == reference.uid) {
            None => Owner::Gone,
            Some(job) => keys::as_owner(&job),
        }
    }
}

impl Secrets for WantedBy {
    fn exists(&self, secret: &SecretReference) -> Option<bool> {
        let key = ObjectKey::new(secret.namespace.as_str(), secret.name.as_str());
        let secrets = self
            .secrets
            .as_ref()
            .filter(|_| self.is_watched(&secret.namespace))?;
        Some(secrets.snapshot().get(&key).is_some())
    }
}

impl Reconciler for NodeImages {
    fn reconcile(&self, key: &ObjectKey, _memory: &Memory, now: Timestamp) -> Outcome {
        let cached = self.images.snapshot().get(key);
        let node = self.nodes.snapshot().get(key);
        let api_version = self.served.api_version(kruise_api::nodeimage::RESOURCE);
        let Ok(api_version) = api_version
            .map_err(drop)
            .and_then(|version| match (&cached, &node) {
                (None, None) => Err(()),
                _ => Ok(version),
            })
        else {
            return Outcome::Gone;
        };
        let image = match cached.as_ref().map(|cached| &cached.object) {
            Some(Err(error)) => return Outcome::Plan(Box::new(invalid_spec::plan(error))),
            Some(Ok(image)) => Some(&**image),
            None => None,
        };
        let snapshot = Snapshot {
            name: &key.name,
            api_version: &api_version,
            image,
            node: node.as_deref(),
            jobs: &self.wanted_by,
            secrets: &self.wanted_by,
            options: self.options,
        };
        Outcome::Plan(Box::new(plan(&snapshot, now)))
    }

    fn keys(&self) -> Vec<ObjectKey> {
        let mut keys: BTreeSet<ObjectKey> = BTreeSet::new();
        keys.extend(self.images.snapshot().iter().map(|image| ObjectKey::of(&**image)));
        keys.extend(self.nodes.snapshot().iter().map(|node| ObjectKey::of(&**node)));
        keys.into_iter().collect()
    }

    fn about(&self, key: &ObjectKey) -> Option<ObjectRef> {
        let image = self.images.snapshot().get(key)?;
        let api_version = self.served.api_version(kruise_api::nodeimage::RESOURCE).ok()?;
        Some(ObjectRef::of(&*image, api_version, KIND.kind))
    }
}
