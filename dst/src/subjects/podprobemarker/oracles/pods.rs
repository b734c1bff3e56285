//! *"Pods follow results."*

use super::super::start::PROBES;
use super::known::results;
use crate::rules::prelude::*;

/// Judges conditions of pods that a write changes: each is a result that somebody may have read.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != PODS.plural {
        return None;
    }
    let [before, after] = write.both(mirror, PODS)?;
    let changed = items(&after.value()["status"]["conditions"]).filter(|condition| {
        let kind = text(&condition["type"]);
        kind.contains(".example/") && before.state(kind) != text(&condition["status"])
    });
    for condition in changed {
        let (kind, status) = (text(&condition["type"]), text(&condition["status"]));
        let name = kind.replace(".example/", "#");
        let reports = |list: &Object| {
            let mut states = results(list, after).filter(|state| state["name"] == *name);
            states.any(|state| (state["state"] == "Succeeded") == (status == "True"))
        };
        let was_reported = write.sees_all(mirror, PROBES).any(|list| list.may_be(reports));
        never!(write, "conditions are results", !was_reported => "{kind} is {status}");
    }
    None
}
