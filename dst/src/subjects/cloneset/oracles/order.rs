//! *"Those that users prefer are updated first."* An available pod is moved only if there is room for all that go
//! before it: those with a weight before those without, and those without any ordered key before those with one.

use super::super::draft::CLONESETS;
use super::spec::{Knowledge, Spec};
use crate::engine::user::OWN;
use crate::rules::prelude::*;

/// Judges writes that move a pod to another revision.
pub fn judge(write: &Write<'_>, known: &Knowledge<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.method != Method::Patch {
        return None;
    }
    let set = mirror.only(CLONESETS)?;
    let rolling = &set.spec()["updateStrategy"]["rollingUpdate"];
    let strategy = &rolling["priorityStrategy"];
    if strategy.is_null() {
        return None;
    }
    let goes_first = |object: &Object| object.has_label(OWN) != strategy["orderPriority"].is_array();
    let [before, after] = write.pod(mirror)?;
    let (from, to) = (before.label(REVISION), after.label(REVISION));
    if from == to || from.is_empty() {
        return None;
    }
    let pod = known.pod(write.name)?;
    if pod.may_be(|object| goes_first(object) || object.label(STATE) == "PreparingUpdate") {
        return None;
    }
    // One that is unavailable takes nobody's turn.
    let serves = |object: &Object| {
        let mut specs = known.specs.iter();
        specs.all(|spec| object.is_certainly_available(spec.min_ready_seconds, write.decided))
    };
    if pod.may_be(|object| !serves(object)) {
        return None;
    }
    // Pods that could go at once, whatever is believed of them.
    let waits = |object: &Object| {
        object.is_active()
            && goes_first(object)
            && object.label(REVISION) == from
            && !object.has_label(SPECIFIED)
            && matches!(object.label(STATE), "" | "Normal" | "PreparingNormal")
            && !object.spec()["nodeName"].is_null()
    };
    let preferred = known.least(waits);
    let pods = known.most(Object::is_active);
    let fits = |spec: &Spec| preferred < spec.max_unavailable + (pods - spec.replicas).max(0);
    never!(write, "preferred pods first", !known.allows(fits) => "to {to}, before {preferred} others that users prefer");
    None
}
