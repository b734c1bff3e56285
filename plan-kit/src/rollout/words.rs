//! What is reported of the writes of a rollout.

use crate::{
    owner::Owner,
    plan::{EventNote, FailureNote},
};

/// What is reported of a write, in the words of a kind: clients match on them.
pub struct Words {
    /// After success.
    pub done: EventNote,
    /// After failure.
    pub failed: FailureNote,
}

/// How a kind deletes its pods.
pub struct Deletions {
    /// Reports a deletion for good, given the name of the pod.
    pub removed: fn(&Owner<'_>, &str) -> Words,
    /// Reports a deletion for an update, given the names of the pod and of the revision it comes back on.
    pub recreated: fn(&Owner<'_>, &str, &str) -> Words,
    /// Given where a shortage of pods would bring a held pod back into service: a pod that an update recreates and
    /// a hook holds is then labelled for deletion, and this reports it.
    pub requested: Option<fn(&Owner<'_>, &str, &str) -> Words>,
}
