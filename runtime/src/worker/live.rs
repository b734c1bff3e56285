//! Asking the server how new it is.
//!
//! A list answers with the version of the resource at that instant. A cache that has reached it shows every write that was
//! made before, ours included, whether or not we heard of its success.

use std::collections::BTreeSet;

use kruise_plan_kit::{Chain, Part, Resource, Target};
use kube_cache::Expectation;

use super::{Controller, Planner};
use crate::{
    ApiError,
    client::path_of,
    follow::{Scope, newest},
};

/// What workloads write, and so what they look at.
const WORKLOADS: [Resource; 4] = [
    Resource::Pods,
    Resource::Claims,
    Resource::Revisions,
    Resource::PullJobs,
];

/// What must be seen anew when a reply to one of these writes is lost, as far as it is watched.
pub(super) fn written(chains: &[Chain]) -> BTreeSet<Resource> {
    let steps = chains.iter().flat_map(|chain| &chain.steps);
    steps
        .map(|step| step.write.target().resource)
        .chain(WORKLOADS)
        .collect()
}

pub(super) fn resource_of(expectation: &Expectation<Resource>) -> Resource {
    match expectation {
        Expectation::AtLeast { resource, .. } | Expectation::Gone { resource, .. } => *resource,
    }
}

impl<P: Planner> Controller<P> {
    /// Resources that the owner's next plan must see anew.
    pub(super) fn unsure(&self, key: &P::Key) -> BTreeSet<Resource> {
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
        resources: BTreeSet<Resource>,
    ) -> Result<(), ApiError> {
        let mut expectations = Vec::new();
        for resource in resources {
            let collection = Target {
                resource,
                namespace: (self.namespace_of)(key).to_owned(),
                name: String::new(),
            };
            let scope = Scope {
                path: path_of(&collection, Part::Main, &self.settings.clonesets),
                selector: None,
            };
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
