//! *"A pod is adopted for a StatefulSet that is there, and released only when it is no longer one of its pods."*

use super::super::start::STATEFULSETS;
use super::known::{is_selected, ordinal};
use crate::rules::moments;
use crate::rules::prelude::*;

/// Judges a write that gives a pod an owner, or takes it away.
pub fn judge(write: &Write<'_>, [before, after]: [&Object; 2], mirror: &Mirror) -> Option<Violation> {
    let (from, to) = (before.owner(), after.owner());
    if from == to {
        return None;
    }
    let seen = write.sees(mirror, PODS, &before.uid).versions.iter();
    let seen = seen.filter(|object| object.version <= before.version);
    let is_its = |pod: &Object| is_selected(pod) && ordinal(&pod.name).is_some();
    let fits = |pod: &Object| is_its(pod) && pod.owner().is_empty();
    if to.is_empty() {
        never!(write, "released when it left", seen.clone().all(|pod| is_its(pod)) => "it is one of the StatefulSet's");
        return None;
    }
    never!(write, "adopted without an owner", !from.is_empty() => "it has another owner");
    never!(write, "adopted for one that is there", !is_alive(to, write, mirror) => "its owner is gone or goes");
    never!(write, "adopted if it fits", !seen.clone().any(|pod| fits(pod)) => "labels or name differ");
    None
}

/// Was the StatefulSet there, and not being deleted, at some time since the sender decided?
fn is_alive(uid: &str, write: &Write<'_>, mirror: &Mirror) -> bool {
    let since = moments::since(mirror.versions(STATEFULSETS, uid), write.decided, u64::MAX);
    since.iter().any(|object| !object.is_going())
}
