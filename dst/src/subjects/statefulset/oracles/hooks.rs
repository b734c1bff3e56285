//! *"No pod is deleted, and none becomes available, before its hook allows it."* A pod that a hook holds before its deletion
//! is unavailable if that hook marks pods, and it returns only if it is wanted and nobody requested its deletion.

use kruise_sim::Method;

use super::known::Known;
use crate::engine::oracles::{Mirror, Object, Violation, Write};
use crate::subjects::hooks::{has_all, has_any};
use crate::subjects::labels::{SPECIFIED, STATE};
use crate::subjects::statefulset::start::STATEFULSETS;

const HELD: &str = "PreparingDelete";

/// Judges deletions, and the phases of pods' lives.
pub fn judge(
    write: &Write<'_>,
    [before, after]: [&Object; 2],
    known: &Known<'_>,
    mirror: &Mirror,
) -> Option<Violation> {
    let set = mirror.of(STATEFULSETS).objects.get(&*known.uid)?.last()?;
    let lifecycle = &set.value()["spec"]["lifecycle"];
    let pod = known.pod(before)?;
    let violation = |oracle| {
        let (from, to) = (before.label(STATE), after.label(STATE));
        let what = format!("{} brought {} from {from} to {to}", write.process, before.name);
        Some(Violation { oracle, what })
    };
    let hook = &lifecycle["preDelete"];
    if write.method == Method::Delete {
        let holds = !before.is_going() && !hook.is_null() && !pod.may_be(|object| !has_any(object, hook));
        return holds.then(|| violation("its hook allows its deletion")).flatten();
    }
    match (before.label(STATE), after.label(STATE)) {
        (from, to) if from == to => None,
        ("PreparingNormal", "Normal") => {
            let hook = &lifecycle["preNormal"];
            let waits = !hook.is_null() && !pod.may_be(|object| has_all(object, hook));
            waits
                .then(|| violation("available when its hook allows"))
                .flatten()
        }
        (_, HELD) => {
            let serves = hook["markPodNotReady"] == true && after.state("KruisePodReady") != "False";
            (serves && !after.is_going())
                .then(|| violation("unavailable while it is held"))
                .flatten()
        }
        (HELD, _) => {
            let stays = known.specs.iter().any(|spec| {
                spec.rank(pod.ordinal).is_some()
                    && (!spec.updates() || pod.may_be(|object| !object.has_label(SPECIFIED)))
            });
            (!stays).then(|| violation("held until it is deleted")).flatten()
        }
        _ => None,
    }
}
