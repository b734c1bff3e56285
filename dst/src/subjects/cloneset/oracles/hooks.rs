//! *"No pod is deleted, and none becomes available, before its hook allows it."* A pod that a hook holds before its
//! deletion is unavailable if that hook marks pods, and it returns only where none does, nobody requested the
//! deletion of this very pod, and replicas are short.

use super::super::draft::CLONESETS;
use super::availability::brief;
use super::spec::{Knowledge, Spec};
use crate::rules::belief::Seen;
use crate::rules::lifecycle::{self, HELD};
use crate::rules::prelude::*;

/// From which phase of its lifecycle to which other one a write brought a pod.
pub fn turn<'a>(write: &Write<'_>, mirror: &'a Mirror) -> Option<(&'a str, &'a str)> {
    let [before, after] = write.pod(mirror)?;
    let (from, to) = (before.label(STATE), after.label(STATE));
    (from != to).then_some((from, to))
}

/// Judges deletions, and the phases of pods' lives.
pub fn judge(write: &Write<'_>, known: &Knowledge<'_>, mirror: &Mirror) -> Option<Violation> {
    let both = write.pod(mirror)?;
    let set = mirror.only(CLONESETS)?;
    let lifecycle = &set.spec()["lifecycle"];
    let mut pods = known.pods.iter();
    let pod = pods.find(|pod| pod.may_be(|object| object.uid == both[0].uid))?;
    let may_return = || may_come_back(pod, known, lifecycle);
    let verdict = lifecycle::judge(write, both, pod, lifecycle, may_return);
    // Where a shortage keeps all that are held, none of them is deleted.
    let held = |object: &Object| object.label(STATE) == HELD && !object.has_label(SPECIFIED);
    if verdict.is_some() || write.method != Method::Delete || marks(lifecycle) || !pod.is(held) {
        return verdict;
    }
    let short = |spec: &Spec| spec.replicas - known.most(|object| stays(object, spec));
    let fits = |spec: &Spec| spec.names(write.name) || short(spec) < known.most(held);
    never!(write, "kept when replicas are short", !known.allows(fits) => "{}", brief(known));
    None
}

fn may_come_back(pod: &Seen<'_>, known: &Knowledge<'_>, lifecycle: &Value) -> bool {
    let specified = !pod.may_be(|object| !object.has_label(SPECIFIED));
    let short = known
        .allows(|spec| !spec.names(pod.name()) && known.least(|object| stays(object, spec)) < spec.replicas);
    short && !specified && !marks(lifecycle)
}

/// A pod that neither goes nor is to go.
fn stays(pod: &Object, spec: &Spec) -> bool {
    pod.is_active() && pod.label(STATE) != HELD && !pod.has_label(SPECIFIED) && !spec.names(&pod.name)
}

/// Do hooks make pods unavailable?
fn marks(lifecycle: &Value) -> bool {
    let mut hooks = ["preDelete", "inPlaceUpdate"].into_iter();
    hooks.any(|hook| lifecycle[hook]["markPodNotReady"] == true)
}
