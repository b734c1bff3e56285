//! Asking the server how new it is.
//!
//! A list answers with the version of the resource at that instant. A cache that has reached it shows every write that was
//! made before, ours included, whether or not we heard of its success.

use std::collections::BTreeSet;

use kruise_plan_kit::{ObjectWrites, Part, ResourceId, Target};
use kube_cache::{Expectation, ObjectKey};

use super::{Controller, Reconciler};
use crate::{
    ApiError,
    follow::{Scope, newest},
};

pub(super) fn resource_of(expectation: &Expectation<ResourceId>) -> ResourceId {
    match expectation {
        Expectation::AtLeast { resource, .. } | Expectation::Gone { resource, .. } => *resource,
    }
}

impl<R: Reconciler> Controller<R> {
    /// Resources that must be seen anew when a reply to one of these writes is lost: what was written, and what the
    /// controller writes at all.
    pub(super) fn may_be_outdated(&self, writes: &[ObjectWrites]) -> BTreeSet<ResourceId> {
        let steps = writes.iter().flat_map(|object| &object.steps);
        let written = steps.map(|step| step.write.target().resource);
        written
            .chain(self.settings.caches.written().iter().copied())
            .collect()
    }

    /// Resources that the owner's next plan must see anew.
    pub(super) fn unsure(&self, key: &ObjectKey) -> BTreeSet<ResourceId> {
        let inner = self.lock();
        inner
            .owners
            .get(key)
            .map(|owner| owner.unsure.clone())
            .unwrap_or_default()
    }

    /// Closes the owner's gate until the caches of these resources are as new as the server is now.
    pub(super) async fn ask_how_new(
        &self,
        key: &ObjectKey,
        resources: BTreeSet<ResourceId>,
    ) -> Result<(), ApiError> {
        let mut expectations = Vec::new();
        let written = self.settings.caches.written();
        let first = written.iter().filter(|one| resources.contains(one));
        let others = resources.iter().filter(|one| !written.contains(one));
        for resource in first.chain(others).copied() {
            let collection = Target {
                resource,
                namespace: key.namespace.to_string(),
                name: String::new(),
            };
            // What is not served has no cache that could be behind.
            let Ok(path) = self.settings.served.path(&collection, Part::Main) else {
                continue;
            };
            let scope = Scope { path, selector: None };
            // A server without comparable versions cannot be waited for.
            if let Some(version) = newest(&self.client, &scope).await? {
                expectations.push(Expectation::AtLeast { resource, version });
            }
        }
        let now = self.started.elapsed();
        let mut inner = self.lock();
        for expectation in expectations {
            inner.expectations.record(key.clone(), expectation, now);
        }
        inner.owners.entry(key.clone()).or_default().unsure.clear();
        Ok(())
    }
}
