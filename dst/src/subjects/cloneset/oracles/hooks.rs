//! *"No pod is deleted, and none becomes available, before its hook allows it."* A pod that a hook holds before its deletion
//! is unavailable if that hook marks pods, and it returns only where none does, nobody requested the deletion of this very
//! pod, and replicas are short.

use kruise_sim::Method;
use serde_json::Value;

use super::spec::{Knowledge, Spec};
use crate::engine::oracles::{Mirror, Object, Violation, Write};
use crate::subjects::cloneset::draft::CLONESETS;
use crate::subjects::hooks::{has_all, has_any};
use crate::subjects::knowledge::Seen;
use crate::subjects::labels::{SPECIFIED, STATE};

const HELD: &str = "PreparingDelete";

/// From which phase of its lifecycle to which other one a write brought a pod.
pub fn turn<'a>(write: &Write<'_>, mirror: &'a Mirror) -> Option<(&'a str, &'a str)> {
    let [before, after] = write.pod(mirror)?;
    let (from, to) = (before.label(STATE), after.label(STATE));
    (from != to).then_some((from, to))
}

/// Judges deletions, and the phases of pods' lives.
pub fn judge(write: &Write<'_>, known: &Knowledge<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.component != "cloneset-controller" || write.name.is_empty() {
        return None;
    }
    let set = mirror.of(CLONESETS).now().next()?;
    let lifecycle = &set.value()["spec"]["lifecycle"];
    if write.method == Method::Delete {
        return deleted(write, known, lifecycle);
    }
    let (from, to) = turn(write, mirror)?;
    let pod = known.pod(write.name)?;
    let oracle = match (from, to) {
        (_, "Normal") if from == "PreparingNormal" => {
            let hook = &lifecycle["preNormal"];
            let waits = !hook.is_null() && !pod.may_be(|object| has_all(object, hook));
            waits.then_some("available when its hook allows")
        }
        (_, HELD) => {
            let [_, after] = write.pod(mirror)?;
            let serves = lifecycle["preDelete"]["markPodNotReady"] == true
                && after.state("KruisePodReady") != "False"
                && !after.is_going();
            serves.then_some("unavailable while it is held")
        }
        (HELD, _) => (!may_come_back(pod, known, lifecycle)).then_some("held until it is deleted"),
        _ => None,
    }?;
    let what = format!("{} brought {} from {from} to {to}", write.process, write.name);
    Some(Violation { oracle, what })
}

fn deleted(write: &Write<'_>, known: &Knowledge<'_>, lifecycle: &Value) -> Option<Violation> {
    let pod = known
        .pods
        .iter()
        .find(|pod| pod.name() == write.name && pod.may_be(|object| !object.is_going()))?;
    let hook = &lifecycle["preDelete"];
    if !hook.is_null() && !pod.may_be(|object| !has_any(object, hook)) {
        return Some(Violation {
            oracle: "its hook allows its deletion",
            what: format!("{} deleted {}", write.process, write.name),
        });
    }
    // Where a shortage keeps all that are held, none of them is deleted.
    let held = |object: &Object| object.label(STATE) == HELD && !object.has_label(SPECIFIED);
    if marks(lifecycle) || pod.may_be(|object| !held(object)) {
        return None;
    }
    let named = |spec: &Spec| spec.pods_to_delete.iter().any(|name| name == write.name);
    let fits = |spec: &Spec| {
        named(spec) || spec.replicas - known.most(|object| stays(object, spec)) < known.most(held)
    };
    (!known.allows(fits)).then(|| Violation {
        oracle: "kept when replicas are short",
        what: format!("{} deleted {}", write.process, write.name),
    })
}

fn may_come_back(pod: &Seen<'_>, known: &Knowledge<'_>, lifecycle: &Value) -> bool {
    let specified = !pod.may_be(|object| !object.has_label(SPECIFIED));
    let short = known.allows(|spec| {
        let named = spec.pods_to_delete.iter().any(|name| name == pod.name());
        !named && known.least(|object| stays(object, spec)) < spec.replicas
    });
    short && !specified && !marks(lifecycle)
}

/// A pod that neither goes nor is to go.
fn stays(pod: &Object, spec: &Spec) -> bool {
    let named = spec.pods_to_delete.iter().any(|name| **name == *pod.name);
    pod.is_active() && pod.label(STATE) != HELD && !pod.has_label(SPECIFIED) && !named
}

/// Do hooks make pods unavailable?
fn marks(lifecycle: &Value) -> bool {
    let hooks = ["preDelete", "inPlaceUpdate"];
    hooks
        .iter()
        .any(|hook| lifecycle[*hook]["markPodNotReady"] == true)
}
