//! *"Status reports what was"*, and what one status counts fits together.

use super::view;
use crate::engine::oracles::{Mirror, PODS, Violation, Write};
use crate::subjects::sidecarset::start::SIDECARSETS;

/// Of each pair in one status, the first counts some of those that the second counts.
const PARTS: [(&str, &str); 4] = [
    ("updatedPods", "matchedPods"),
    ("readyPods", "matchedPods"),
    ("updatedReadyPods", "updatedPods"),
    ("updatedReadyPods", "readyPods"),
];

/// Judges status writes.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    let set = mirror.of(SIDECARSETS).named(write.name)?;
    if write.subresource != "status" {
        let what = format!("{} changed the specification of {}", write.process, write.name);
        return Some(Violation {
            oracle: "a specification is its author's",
            what,
        });
    }
    let count = |name: &str| set.value()["status"][name].as_i64().unwrap_or(0);
    if let Some((part, whole)) = PARTS.iter().find(|(part, whole)| count(part) > count(whole)) {
        let what = format!(
            "{} reported {part} {} of {whole} {} of {}",
            write.process,
            count(part),
            count(whole),
            write.name
        );
        return Some(Violation {
            oracle: "status of a set fits together",
            what,
        });
    }
    let pods = mirror.of(PODS).objects.values();
    let ever = pods.filter(|versions| versions.iter().any(|pod| view::is_in_list(pod, write.name)));
    let ever = ever.count() as i64;
    (count("matchedPods") > ever).then(|| Violation {
        oracle: "status of a set reports what was",
        what: format!(
            "{} reported {} pods of {}, and there were never more than {ever}",
            write.process,
            count("matchedPods"),
            write.name
        ),
    })
}
