//! Objects of which it is unknown whether a write took effect: the response was lost, or the server failed.
//!
//! # Guarantees
//! - The owner is not planned again before each of these objects was read from the server, and before the caches
//!   contain what the read showed. Other objects of the same resource are not waited for: a resource without
//!   changes would delay the owner until the next bookmark of its watch, up to a minute.
//! - The request to create an object may arrive after the read. Its name is kept while that is possible, and plans
//!   use it before other names, so that the object is not created twice.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use kruise_plan_kit::{Part, ResourceId, Target};
use kube_cache::{Expectation, ObjectKey};

use super::Controller;
use crate::{
    ApiError,
    executor::{Doubt, Stored},
};

/// How long a request may still arrive after its sender has given up: an API server ends requests after a minute.
const LATE: Duration = Duration::from_mins(2);

/// Reads in flight at once.
const CONCURRENCY: usize = 16;

/// Objects whose creation may still take effect, each with the time until which it may.
#[derive(Clone, Debug, Default)]
pub(super) struct Late(BTreeMap<Target, Duration>);

impl Late {
    fn may_appear(&mut self, target: Target, now: Duration) {
        self.0.insert(target, now.saturating_add(LATE));
    }

    /// The object exists, or did: its name is as good as any other.
    pub(super) fn appeared(&mut self, target: &Target) {
        self.0.remove(target);
    }

    /// Those whose time is not over.
    pub(super) fn at(&mut self, now: Duration) -> impl Iterator<Item = &Target> {
        self.0.retain(|_, until| *until > now);
        self.0.keys()
    }
}

impl Controller {
    /// Objects that must be read before the owner's next plan.
    pub(super) fn doubts(&self, key: &ObjectKey) -> Vec<Doubt> {
        let inner = self.lock();
        let doubts = inner.owners.get(key).map(|owner| &owner.doubts);
        doubts.into_iter().flatten().cloned().collect()
    }

    /// Reads these objects. Records the expectation that the caches contain what was read.
    pub(super) async fn resolve(&self, key: &ObjectKey, doubts: Vec<Doubt>) -> Result<(), ApiError> {
        let reads = doubts.into_iter().map(async |doubt| {
            let read = match self.settings.served.path(&doubt.target, Part::Main) {
                Ok(path) => self.client.get::<Stored>(&path).await,
                Err(error) => Err(error.into()),
            };
            (doubt, read)
        });
        let reads: Vec<_> = stream::iter(reads).buffer_unordered(CONCURRENCY).collect().await;
        let now = self.started.elapsed();
        let mut inner = self.lock();
        let mut failed = None;
        for (doubt, read) in reads {
            let stored = match read {
                Ok(stored) => Some(stored),
                Err(error) if error.is_not_found() => None,
                Err(error) => {
                    failed = Some(error);
                    continue;
                }
            };
            let is_watched = self.settings.caches.observed(doubt.target.resource).is_some();
            for expectation in expectations(&doubt, stored.as_ref()).filter(|_| is_watched) {
                inner.expectations.record(key.clone(), expectation, now);
            }
            let owner = inner.owners.entry(key.clone()).or_default();
            match (&doubt.uid, &stored) {
                (None, None) => owner.late.may_appear(doubt.target.clone(), now),
                (None, Some(stored)) => {
                    owner.late.appeared(&doubt.target);
                    if doubt.target.resource == ResourceId::PODS {
                        let created = Arc::make_mut(&mut owner.memory.created);
                        created.insert(doubt.target.name.clone(), stored.uid.clone());
                    }
                }
                (Some(_), _) => {}
            }
            owner.doubts.remove(&doubt);
        }
        failed.map_or(Ok(()), Err)
    }
}

/// What the caches must contain after the read of an object: its version, and that an object which has left is gone.
fn expectations(doubt: &Doubt, stored: Option<&Stored>) -> impl Iterator<Item = Expectation<ResourceId>> {
    let resource = doubt.target.resource;
    let version = stored.and_then(|stored| stored.version.parse().ok());
    let present = version.map(|version| Expectation::AtLeast { resource, version });
    let left = doubt.uid.as_deref();
    let left = left.filter(|uid| stored.is_none_or(|stored| stored.uid != *uid));
    let gone = left.map(|uid| Expectation::Gone {
        resource,
        uid: uid.into(),
    });
    present.into_iter().chain(gone)
}
