//! *"A pod is adopted for a StatefulSet that is there, and released only when it is no longer one of its pods."*

use super::known::{is_selected, ordinal};
use crate::engine::oracles::{Mirror, Object, PODS, Violation, Write};
use crate::subjects::statefulset::start::STATEFULSETS;

/// Judges a write that gives a pod an owner, or takes it away.
pub fn judge(write: &Write<'_>, [before, after]: [&Object; 2], mirror: &Mirror) -> Option<Violation> {
    let (from, to) = (before.owner(), after.owner());
    if from == to {
        return None;
    }
    let violation = |oracle, what: &str| {
        let what = format!("{} wrote {}: {what}", write.process, after.name);
        Some(Violation { oracle, what })
    };
    let floor = write.sent.floors.of(PODS);
    let seen = mirror.of(PODS).window(&before.uid, floor);
    let seen = seen.iter().filter(|object| object.version <= before.version);
    let may_be = |believed: &dyn Fn(&Object) -> bool| seen.clone().any(|object| believed(object));
    if to.is_empty() {
        let strays = |pod: &Object| !is_selected(pod) || ordinal(&pod.name).is_none();
        return (!may_be(&strays))
            .then(|| violation("released when it left", "it is one of the StatefulSet's"))
            .flatten();
    }
    if !from.is_empty() {
        return violation("adopted without an owner", "it has another owner");
    }
    if !is_alive(to, write, mirror) {
        return violation("adopted for one that is there", "its owner is gone or goes");
    }
    let fits = |pod: &Object| is_selected(pod) && ordinal(&pod.name).is_some() && pod.owner().is_empty();
    (!may_be(&fits))
        .then(|| violation("adopted if it fits", "labels or name differ"))
        .flatten()
}

/// Was the StatefulSet there, and not being deleted, at some time since the sender decided?
fn is_alive(uid: &str, write: &Write<'_>, mirror: &Mirror) -> bool {
    let Some(versions) = mirror.of(STATEFULSETS).objects.get(uid) else {
        return false;
    };
    let known = versions.partition_point(|object| object.at <= write.decided);
    let since = versions.get(known.saturating_sub(1)..).unwrap_or_default();
    since.iter().any(|object| !object.is_going())
}
