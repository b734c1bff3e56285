//! Asking the server how new it is.
//!
//! A list answers with the version of the resource at that instant. A cache that has reached it shows every write that was
//! made before, ours included, whether or not we heard of its success.

use std::collections::BTreeSet;

use kruise_plan_kit::{Chain, Part, ResourceId, Target};
use kube_cache::Expectation;

use super::{Controller, Planner};
use crate::{
    ApiError,
    follow::{Scope, newest},
};

/// What workloads write, and so what they look at.
const WORKLOADS: [ResourceId; 4] = [
    ResourceId::PODS,
    ResourceId::CLAIMS,
    ResourceId::REVISIONS,
    ResourceId::IMAGE_PULL_JOBS,
];

/// What must be seen anew when a reply to one of these writes is lost, as far as it is watched.
pub(super) fn written(chains: &[Chain]) -> BTreeSet<ResourceId> {
    let steps = chains.iter().flat_map(|chain| &chain.steps);
    steps
        .map(|step| step.write.target().resource)
        .chain(WORKLOADS)
        .collect()
}

pub(super) fn resource_of(expectation: &Expectation<ResourceId>) -> ResourceId {
    match expectation {
        Expectation::AtLeast { resource, .. } | Expectation::Gone { resource, .. } => *resource,
    }
}

impl<P: Planner> Controller<P> {
    /// Resources that the owner's next plan must see anew.
    pub(super) fn unsure(&self, key: &P::Key) -> BTreeSet<ResourceId> {
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
        key: &P::Key,
        resources: BTreeSet<ResourceId>,
    ) -> Result<(), ApiError> {
        let mut expectations = Vec::new();
        for resource in resources {
            let collection = Target {
                resource,
                namespace: (self.namespace_of)(key).to_owned(),
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
            inner.gate.record(key.clone(), expectation, now);
        }
        inner.owners.entry(key.clone()).or_default().unsure.clear();
        Ok(())
    }
}
