//! *"Status reports what was."* No status counts more pods than there were at some moment since its sender's knowledge,
//! and what one status counts fits together.

use std::sync::Arc;

use kruise_sim::Method;

use crate::engine::oracles::{Mirror, Object, PODS, Violation, Write};
use crate::subjects::cloneset::draft::CLONESETS;
use crate::subjects::labels::REVISION;

type Counted<'a> = &'a dyn Fn(&Object) -> bool;

/// Of each pair in one status, the first counts some of those that the second counts.
const PARTS: [(&str, &str); 6] = [
    ("readyReplicas", "replicas"),
    ("availableReplicas", "readyReplicas"),
    ("updatedReplicas", "replicas"),
    ("updatedReadyReplicas", "updatedReplicas"),
    ("updatedReadyReplicas", "readyReplicas"),
    ("updatedAvailableReplicas", "availableReplicas"),
];

/// Two counts of one status that do not fit together.
fn misfit(status: &serde_json::Value) -> Option<String> {
    PARTS.iter().find_map(|(part, whole)| {
        let (few, many) = (status[part].as_i64()?, status[whole].as_i64()?);
        (few > many).then(|| format!("{part} {few} of {whole} {many}"))
    })
}

/// Judges status writes.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != "clonesets" || write.subresource != "status" || write.method != Method::Patch {
        return None;
    }
    let status = &write.body["status"];
    if let Some(counts) = misfit(status) {
        return Some(Violation {
            oracle: "status fits together",
            what: format!("{} reported {counts}", write.process),
        });
    }
    let set = mirror.of(CLONESETS).now().next()?;
    let pods = mirror.of(PODS);
    // A status is written up to half a second after it was computed, or much later if it has to be repeated; what was
    // true at any time counts.
    // Whether there were as many as reported is the question, and the newest versions are the likeliest to answer it.
    let ever = |counts: &dyn Fn(&Object) -> bool, reported: usize| {
        let counted = |one: &Arc<Object>| counts(one) && one.owner() == &*set.uid;
        let found = pods
            .objects
            .values()
            .filter(|versions| versions.iter().rev().any(counted));
        found.take(reported).count() as i64
    };
    let revision = set.value()["status"]["updateRevision"]
        .as_str()
        .unwrap_or_default();
    let counts: [(&str, Counted<'_>); 4] = [
        ("replicas", &Object::is_active),
        ("readyReplicas", &Object::is_ready),
        ("updatedReplicas", &|pod| {
            pod.is_active() && pod.label(REVISION) == revision
        }),
        ("updatedReadyReplicas", &|pod| {
            pod.is_ready() && pod.label(REVISION) == revision
        }),
    ];
    for (name, counted) in counts {
        let reported = status[name].as_i64().unwrap_or(0);
        let most = ever(counted, usize::try_from(reported).unwrap_or(0));
        if reported > most {
            let what = format!(
                "{} reported {name} {reported}, but there were never more than {most}",
                write.process
            );
            return Some(Violation {
                oracle: "status reports what was",
                what,
            });
        }
    }
    None
}
