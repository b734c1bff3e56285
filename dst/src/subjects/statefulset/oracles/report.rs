//! *"Status reports what was."* No status counts more pods than there ever were, and what one status counts fits together.

use std::sync::Arc;

use kruise_sim::Method;
use serde_json::Value;

use crate::engine::oracles::{Mirror, Object, PODS, Violation, Write};
use crate::subjects::labels::REVISION;
use crate::subjects::statefulset::start::STATEFULSETS;

type Counted<'a> = &'a dyn Fn(&Object) -> bool;

/// Of each pair in one status, the first counts some of those that the second counts.
const PARTS: [(&str, &str); 6] = [
    ("readyReplicas", "replicas"),
    ("availableReplicas", "readyReplicas"),
    ("updatedReplicas", "replicas"),
    ("currentReplicas", "replicas"),
    ("updatedReadyReplicas", "readyReplicas"),
    ("updatedAvailableReplicas", "availableReplicas"),
];

/// Two counts of one status that do not fit together.
fn misfit(status: &Value) -> Option<String> {
    PARTS.iter().find_map(|(part, whole)| {
        let (few, many) = (status[part].as_i64()?, status[whole].as_i64()?);
        (few > many).then(|| format!("{part} {few} of {whole} {many}"))
    })
}

/// Judges status writes.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != "statefulsets" || write.subresource != "status" || write.method != Method::Patch {
        return None;
    }
    let set = mirror.of(STATEFULSETS).now().next()?;
    let status = &set.value()["status"];
    let violation = |oracle, what: String| {
        let what = format!("{} reported {what}", write.process);
        Some(Violation { oracle, what })
    };
    if let Some(counts) = misfit(status) {
        return violation("status fits together", counts);
    }
    let pods = mirror.of(PODS);
    let ever = |counts: Counted<'_>| {
        let counted = |one: &Arc<Object>| counts(one) && one.owner() == &*set.uid;
        let found = pods.objects.values();
        found
            .filter(|versions| versions.iter().rev().any(counted))
            .count() as i64
    };
    let revision = status["updateRevision"].as_str().unwrap_or_default();
    let is_ready = |pod: &Object| pod.state("Ready") == "True";
    let counts: [(&str, Counted<'_>); 4] = [
        ("replicas", &|_| true),
        ("readyReplicas", &is_ready),
        ("updatedReplicas", &|pod| pod.label(REVISION) == revision),
        ("updatedReadyReplicas", &|pod| {
            is_ready(pod) && pod.label(REVISION) == revision
        }),
    ];
    let wrong = counts.into_iter().find_map(|(name, counted)| {
        let reported = status[name].as_i64().unwrap_or(0);
        let most = ever(counted);
        (reported > most).then(|| format!("{name} {reported}, but there were never more than {most}"))
    })?;
    violation("status reports what was", wrong)
}
