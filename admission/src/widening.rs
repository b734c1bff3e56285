//! Requests that a webhook must be called for before an object is stored that needs it.
//!
//! A webhook with a match condition is called for what the condition holds of. An object that makes more requests need it
//! is stored only once API servers know the wider condition; otherwise a client that creates a pod right after it would
//! get a pod that no webhook has reviewed. The review of such an object ends in [`Outcome::Widen`](crate::Outcome::Widen). It
//! stays pure: the caller writes the condition, waits, and only then sends the response.

use crate::pod::sidecars::Reach;

/// A condition that a webhook must have, because of an object that is about to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Widening {
    /// Name of the webhook in its configuration.
    pub webhook: &'static str,
    /// The object.
    pub object: StoredSoon,
    reach: Reach,
}

/// An object that is about to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSoon {
    /// Its name.
    pub name: String,
    /// Empty if the server has not given it one yet.
    pub uid: String,
    /// Its generation once it is stored; 0 if that is not known.
    pub generation: i64,
}

impl Widening {
    /// For the pods of a SidecarSet.
    pub(crate) fn of_pods(webhook: &'static str, object: StoredSoon, reach: Reach) -> Self {
        Self {
            webhook,
            object,
            reach,
        }
    }

    /// Does this condition hold of everything that it must hold of? Certain if true.
    pub fn is_within(&self, condition: &str) -> bool {
        self.reach.is_within(condition)
    }

    /// Conditions in CEL that hold of everything that it must hold of, from the narrowest to the widest.
    pub fn conditions(&self) -> [String; 3] {
        let [exact, by_key] = self.reach.clone().expressions();
        [exact, by_key, "true".to_owned()]
    }
}
