//! *"No pod is deleted before its hook allows it."* A pod that a hook holds is unavailable if that hook marks pods, and it
//! does not return.

use kruise_sim::Method;

use super::known::{Known, is_held};
use crate::engine::oracles::{Mirror, Object, Violation, Write};
use crate::subjects::daemonset::start::DAEMONSETS;
use crate::subjects::hooks::has_any;
use crate::subjects::labels::STATE;

/// Judges deletions, and the phases of pods' lives.
pub fn judge(
    write: &Write<'_>,
    [before, after]: [&Object; 2],
    known: &Known<'_>,
    mirror: &Mirror,
) -> Option<Violation> {
    let set = mirror.of(DAEMONSETS).objects.get(&*known.uid)?.last()?;
    let hook = &set.value()["spec"]["lifecycle"]["preDelete"];
    let pod = known.pod(&before.uid)?;
    let violation = |oracle| {
        let (from, to) = (before.label(STATE), after.label(STATE));
        let what = format!(
            "{} {:?} {} from {from:?} to {to:?}",
            write.process, write.method, before.name
        );
        Some(Violation { oracle, what })
    };
    if write.method == Method::Delete {
        let holds = !before.is_going() && !hook.is_null() && pod.seen.must_be(|object| has_any(object, hook));
        return holds.then(|| violation("its hook allows its deletion")).flatten();
    }
    match (is_held(before), is_held(after)) {
        (false, true) => {
            let serves = hook["markPodNotReady"] == true && after.state("KruisePodReady") != "False";
            (serves && !after.is_going())
                .then(|| violation("unavailable while it is held"))
                .flatten()
        }
        (true, false) => violation("held until it is deleted"),
        _ => None,
    }
}
