//! Reads the current resource versions of the server.
//!
//! The response to a list has the version of the resource at that time. A cache that has reached it contains every
//! earlier write, also one whose response was lost.

use std::collections::BTreeSet;

use kruise_plan_kit::{Part, ResourceId, Target};
use kube_cache::{Expectation, ObjectKey};

use super::Controller;
use crate::{
    ApiError,
    follow::{Scope, current_version},
};

pub(super) fn resource_of(expectation: &Expectation<ResourceId>) -> ResourceId {
    match expectation {
        Expectation::AtLeast { resource, .. } | Expectation::Gone { resource, .. } => *resource,
    }
}

impl Controller {
    /// Resources whose caches must be current before the owner's next plan.
    pub(super) fn unconfirmed(&self, key: &ObjectKey) -> BTreeSet<ResourceId> {
        let inner = self.lock();
        inner
            .owners
            .get(key)
            .map(|owner| owner.unconfirmed.clone())
            .unwrap_or_default()
    }

    /// Records the expectation that the caches of these resources reach the server's current versions.
    pub(super) async fn expect_current(
        &self,
        key: &ObjectKey,
        resources: BTreeSet<ResourceId>,
    ) -> Result<(), ApiError> {
        let mut expectations = Vec::new();
        for resource in resources {
            let collection = Target {
                resource,
                namespace: key.namespace.to_string(),
                name: String::new(),
            };
            // A resource that is not served has no cache to wait for.
            let Ok(path) = self.settings.served.path(&collection, Part::Main) else {
                continue;
            };
            let scope = Scope::new(path, None);
            // Without comparable versions there is nothing to wait for.
            if let Some(version) = current_version(&self.client, &scope).await? {
                expectations.push(Expectation::AtLeast { resource, version });
            }
        }
        let now = self.started.elapsed();
        let mut inner = self.lock();
        for expectation in expectations {
            inner.expectations.record(key.clone(), expectation, now);
        }
        inner.owners.entry(key.clone()).or_default().unconfirmed.clear();
        Ok(())
    }
}
