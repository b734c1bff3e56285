//! Requests that webhooks must be called for before an object is stored that needs it.
//!
//! A webhook with a match condition is called for what the condition holds of. An object that makes more requests
//! need it is stored only once API servers know the wider condition; otherwise a client that creates a pod right
//! after it would get a pod that no webhook has reviewed. The review of such an object ends in
//! [`Outcome::Widen`](crate::Outcome::Widen). It stays pure: the caller writes the condition, waits, and only then
//! sends the response.

use std::collections::BTreeSet;
use std::sync::Arc;

use kruise_api::meta::ObjectMeta;

use crate::disruption::Evictions;
use crate::pod::sidecars::{Reach, expressions};
use crate::protocol::Phase;

/// Name of the entry for pods that SidecarSets are injected into, that budgets cover, that may have a record of
/// where they were, that have their probes in an annotation or that may be in a subset. A running manager adds it
/// while there is such a set, budget, PersistentPodState, PodProbeMarker or WorkloadSpread, with the match
/// condition of [`crate::pod::sidecars::condition`].
pub const PODS_OF_SETS: &str = "mpod-sidecars.kb.io";

/// Longest condition, in bytes, that is not the widest.
const LENGTH: usize = 2 * 1024;

/// A condition that a webhook must have, because of an object that is about to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Widening {
    /// Name of the webhook in its configuration.
    pub webhook: &'static str,
    /// Which configuration it is in.
    pub phase: Phase,
    /// The object.
    pub object: Arc<StoredSoon>,
    requests: Requests,
}

/// An object that is about to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSoon {
    /// Its kind.
    pub kind: String,
    /// Its namespace; empty if it is in none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Empty if the server has not given it one yet.
    pub uid: String,
    /// Its generation once it is stored; 0 if that is not known.
    pub generation: i64,
}

impl StoredSoon {
    /// An object of a kind, with this metadata.
    pub(crate) fn of(kind: &str, metadata: &ObjectMeta) -> Arc<Self> {
        Arc::new(Self {
            kind: kind.to_owned(),
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            uid: metadata.uid.clone(),
            generation: metadata.generation,
        })
    }
}

/// Which requests the webhook must be called for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Requests {
    Pods(BTreeSet<Reach>),
    Evictions(Evictions),
}

impl Widening {
    /// For the new pods that an object selects: those that match one of these conditions.
    pub(crate) fn of_pods(
        webhook: &'static str,
        object: Arc<StoredSoon>,
        reaches: impl IntoIterator<Item = Reach>,
    ) -> Self {
        Self {
            webhook,
            phase: Phase::Mutating,
            object,
            requests: Requests::Pods(reaches.into_iter().collect()),
        }
    }

    /// For evictions.
    pub(crate) fn of_evictions(webhook: &'static str, object: Arc<StoredSoon>, reach: Evictions) -> Self {
        Self {
            webhook,
            phase: Phase::Validating,
            object,
            requests: Requests::Evictions(reach),
        }
    }

    /// Does this condition hold of everything that it must hold of? Certain if true.
    pub fn is_within(&self, condition: &str) -> bool {
        match &self.requests {
            Requests::Pods(reaches) => reaches.iter().all(|reach| reach.is_within(condition)),
            Requests::Evictions(reach) => reach.is_within(condition),
        }
    }

    /// Conditions in CEL that hold of everything that it must hold of, from the narrowest to the widest. The widest
    /// of an object in a namespace does not leave it. None but the widest is long: they share the room of one
    /// configuration.
    pub fn conditions(&self) -> Vec<String> {
        let mut conditions = match &self.requests {
            Requests::Pods(reaches) => expressions(reaches),
            Requests::Evictions(reach) => vec![reach.expression()],
        };
        let widest = conditions.pop();
        conditions.retain(|one| one.len() <= LENGTH);
        conditions.extend(widest);
        conditions
    }
}
