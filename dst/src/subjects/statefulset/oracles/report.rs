//! *"Status reports what was."*

use super::super::start::STATEFULSETS;
use crate::rules::prelude::*;
use crate::rules::reports::{Counted, misfit, overcounted};

/// Of each pair in one status, the first counts some of those that the second counts.
const PARTS: [(&str, &str); 6] = [
    ("readyReplicas", "replicas"),
    ("availableReplicas", "readyReplicas"),
    ("updatedReplicas", "replicas"),
    ("currentReplicas", "replicas"),
    ("updatedReadyReplicas", "readyReplicas"),
    ("updatedAvailableReplicas", "availableReplicas"),
];

/// Judges status writes.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    let set = mirror
        .only(STATEFULSETS)
        .filter(|_| write.reports(STATEFULSETS))?;
    let status = set.status();
    never!(write, "status fits together", some counts in misfit(status, &PARTS) => "{counts}");
    let revision = text(&status["updateRevision"]);
    let is_ready = |pod: &Object| pod.state("Ready") == "True";
    let counted: [Counted<'_>; 4] = [
        ("replicas", &|_| true),
        ("readyReplicas", &is_ready),
        ("updatedReplicas", &|pod| pod.label(REVISION) == revision),
        ("updatedReadyReplicas", &|pod| {
            is_ready(pod) && pod.label(REVISION) == revision
        }),
    ];
    never!(write, "status reports what was", some wrong in overcounted(status, mirror, &set.uid, &counted) => "{wrong}");
    None
}
