//! *"Pods follow results."*

use super::known::{change, items, text};
use crate::engine::oracles::{Mirror, PODS, Violation, Write};
use crate::subjects::podprobemarker::start::PROBES;

/// Judges conditions of pods that a write changes: each is a result that somebody may have read.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != PODS.plural {
        return None;
    }
    let (before, after) = change(write, mirror, PODS)?;
    let changed = items(&after.value()["status"]["conditions"]).filter(|condition| {
        let kind = text(&condition["type"]);
        kind.contains(".example/") && before.state(&kind) != text(&condition["status"])
    });
    let floor = write.sent.floors.of(PROBES);
    for condition in changed {
        let (kind, status) = (text(&condition["type"]), text(&condition["status"]));
        let name = kind.replace(".example/", "#");
        let mut lists = mirror.of(PROBES).objects.keys();
        let was_reported = lists.any(|list| {
            let versions = mirror.of(PROBES).window(list, floor).iter();
            let statuses = versions.flat_map(|one| items(&one.value()["status"]["podProbeStatuses"]));
            let of_pod = statuses.filter(|status| status["uid"] == *after.uid);
            let mut states = of_pod.flat_map(|status| items(&status["probeStates"]));
            states
                .any(|state| state["name"] == *name && (state["state"] == "Succeeded") == (status == "True"))
        });
        if !was_reported {
            let what = format!("{} set {kind} of {} to {status}", write.process, after.name);
            return Some(Violation {
                oracle: "conditions are results",
                what,
            });
        }
    }
    None
}
