//! *"Status reports what was."*

use super::super::start::DAEMONSETS;
use crate::rules::prelude::*;
use crate::rules::reports::{ever, exaggerated, misfit};

/// Of each pair in one status, the first counts some of those that the second counts.
const PARTS: [(&str, &str); 5] = [
    ("currentNumberScheduled", "desiredNumberScheduled"),
    ("numberReady", "currentNumberScheduled"),
    ("numberAvailable", "numberReady"),
    ("updatedNumberScheduled", "currentNumberScheduled"),
    ("numberUnavailable", "desiredNumberScheduled"),
];

/// Judges status writes.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    let set = mirror.only(DAEMONSETS).filter(|_| write.reports(DAEMONSETS))?;
    let status = set.status();
    never!(write, "status fits together", some counts in misfit(status, &PARTS) => "{counts}");
    let [desired, available, unavailable] =
        ["desiredNumberScheduled", "numberAvailable", "numberUnavailable"].map(|name| number(&status[name]));
    never!(write, "status fits together",
        available + unavailable != desired => "{available} available and {unavailable} unavailable of {desired}");
    let nodes = mirror.of(NODES).objects.values();
    let nodes: BTreeSet<&str> = nodes
        .filter_map(|versions| Some(&*versions.first()?.name))
        .collect();
    let most = [
        ("observedGeneration", number(set.generation())),
        ("desiredNumberScheduled", nodes.len() as i64),
        ("currentNumberScheduled", ever(mirror, &set.uid, |_| true)),
    ];
    never!(write, "status reports what was", some wrong in exaggerated(status, most) => "{wrong}");
    None
}
