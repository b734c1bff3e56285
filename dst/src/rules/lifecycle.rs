//! *"No pod is deleted, and none becomes available, before its hook allows it."* A pod that a hook holds before its
//! deletion is unavailable if that hook marks pods, and returns only where its workload lets it.

use super::belief::Seen;
use crate::rules::prelude::*;
use crate::subjects::hooks::{has_all, has_any};

/// The phase of a pod that a hook holds before its deletion.
pub const HELD: &str = "PreparingDelete";

/// Judges the deletion of a pod, or a change of its phase. `seen` is the pod as the sender may have seen it;
/// `may_return`: may one that is held come back?
pub fn judge(
    write: &Write<'_>,
    [before, after]: [&Object; 2],
    seen: &Seen<'_>,
    lifecycle: &Value,
    may_return: impl Fn() -> bool,
) -> Option<Violation> {
    let (hook, registered) = (&lifecycle["preDelete"], &lifecycle["preNormal"]);
    if write.method == Method::Delete {
        let holds = !before.is_going() && !hook.is_null() && seen.is(|pod| has_any(pod, hook));
        never!(write, "its hook allows its deletion", holds => "{hook} holds it");
        return None;
    }
    let (from, to) = (before.label(STATE), after.label(STATE));
    if from == to {
        return None;
    }
    let waits = !registered.is_null() && seen.is(|pod| !has_all(pod, registered));
    never!(write, "available when its hook allows",
        from == "PreparingNormal" && to == "Normal" && waits => "{registered} is missing");
    let serves = hook["markPodNotReady"] == true && after.state("KruisePodReady") != "False";
    never!(write, "unavailable while it is held", to == HELD && serves && !after.is_going() => "it serves");
    never!(write, "held until it is deleted", from == HELD && !may_return() => "it is {to}");
    None
}
