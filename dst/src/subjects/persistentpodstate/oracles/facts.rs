//! What PersistentPodStates and their workload say.

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
        moments::since(versions, moments::before(self.after.at, LAG), self.after.version)
    }
}

/// Is it about the pods of the StatefulSet?
pub(super) fn is_for_workload(state: &Object) -> bool {
    let target = &state.spec()["targetRef"];
    let group = text(&target["apiVersion"])
        .split_once('/')
        .map(|(group, _)| group);
    target["kind"] == STATEFULSETS.kind && target["name"] == WORKLOAD && group == Some(STATEFULSETS.group)
}

/// What is recorded of a pod; null if nothing is.
pub(super) fn record<'s>(state: &'s Object, pod: &str) -> &'s Value {
    &state.status()["podStates"][pod]
}

/// The ordinal in the name of a pod.
pub(super) fn ordinal(pod: &str) -> Option<i64> {
    pod.rsplit_once('-').and_then(|(_, number)| number.parse().ok())
}
