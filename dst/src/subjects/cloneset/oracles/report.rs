//! *"Status reports what was."* No status counts more pods than there were at some moment since its sender's knowledge.
//!
//! A status is written up to half a second after it was computed, or much later if it has to be repeated; what was
//! true at any time counts.

use super::super::draft::CLONESETS;
use crate::rules::prelude::*;
use crate::rules::reports::{Counted, misfit, overcounted};

/// Of each pair in one status, the first counts some of those that the second counts.
const PARTS: [(&str, &str); 6] = [
    ("readyReplicas", "replicas"),
    ("availableReplicas", "readyReplicas"),
    ("updatedReplicas", "replicas"),
    ("updatedReadyReplicas", "updatedReplicas"),
    ("updatedReadyReplicas", "readyReplicas"),
    ("updatedAvailableReplicas", "availableReplicas"),
];

/// Judges status writes.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    let set = mirror.only(CLONESETS).filter(|_| write.reports(CLONESETS))?;
    let status = &write.body["status"];
    never!(write, "status fits together", some counts in misfit(status, &PARTS) => "{counts}");
    let revision = text(&set.status()["updateRevision"]);
    let counted: [Counted<'_>; 4] = [
        ("replicas", &Object::is_active),
        ("readyReplicas", &Object::is_ready),
        ("updatedReplicas", &|pod| {
            pod.is_active() && pod.label(REVISION) == revision
        }),
        ("updatedReadyReplicas", &|pod| {
            pod.is_ready() && pod.label(REVISION) == revision
        }),
    ];
    never!(write, "status reports what was", some wrong in overcounted(status, mirror, &set.uid, &counted) => "{wrong}");
    None
}
