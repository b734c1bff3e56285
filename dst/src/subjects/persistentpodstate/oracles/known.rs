//! What a write changed, and what its writer may have believed.

use super::super::start::{STATES, WORKLOAD};
use crate::rules::moments;
use crate::rules::prelude::*;
use crate::subjects::statefulset::start::STATEFULSETS;

/// How far anybody may lag behind what others write.
pub(super) const LAG: SignedDuration = SignedDuration::from_secs(90);

/// A write of a PersistentPodState.
pub(super) struct Change<'a> {
    /// What was stored before; none if it was created.
    pub(super) before: Option<&'a Object>,
    /// What is stored now. Of one that was deleted, what was stored last.
    pub(super) after: &'a Object,
}

impl<'a> Change<'a> {
    /// Nothing if the write changed nothing that is stored.
    pub(super) fn of(write: &Write<'_>, mirror: &'a Mirror) -> Option<Self> {
        let change = write.change(mirror, STATES)?;
        Some(Self {
            before: change.before().filter(|_| write.method != Method::Post),
            after: change.after,
        })
    }

    /// The versions of an object that the writer may have taken for the newest.
    pub(super) fn recent<'v>(&self, versions: &'v [Arc<Object>]) -> &'v [Arc<Object>] {
        moments::since(versions, before(self.after.at, LAG), self.after.version)
    }
}

/// A time so long before another one.
pub(super) fn before(at: Timestamp, lag: SignedDuration) -> Timestamp {
    at.checked_sub(lag).unwrap_or(at)
}

/// Is it about the pods of the StatefulSet?
pub(super) fn is_for_workload(state: &Object) -> bool {
    let target = &state.value()["spec"]["targetRef"];
    let is_of_group = |version: &str| version.starts_with(&format!("{}/", STATEFULSETS.group));
    target["kind"] == STATEFULSETS.kind
        && target["name"] == WORKLOAD
        && target["apiVersion"].as_str().is_some_and(is_of_group)
}

/// What is recorded of a pod; null if nothing is.
pub(super) fn record<'s>(state: &'s Object, pod: &str) -> &'s Value {
    &state.value()["status"]["podStates"][pod]
}
