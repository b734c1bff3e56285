//! *"Status reports what was"*, and what one status counts fits together.

use super::super::start::SIDECARSETS;
use super::view;
use crate::rules::prelude::*;

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
    never!(write, "a specification is its author's",
        write.subresource != "status" => "changed the specification of {}", write.name);
    let count = |name: &str| number(&set.status()[name]);
    never!(write, "status of a set fits together",
        some (part, whole) in PARTS.iter().find(|(part, whole)| count(part) > count(whole))
            => "reported {part} {} of {whole} {} of {}", count(part), count(whole), write.name);
    let pods = mirror.of(PODS).objects.values();
    let ever = pods.filter(|versions| versions.iter().any(|pod| view::is_in_list(pod, write.name)));
    let ever = ever.count() as i64;
    never!(write, "status of a set reports what was",
        count("matchedPods") > ever
            => "reported {} pods of {}, and there were never more than {ever}", count("matchedPods"), write.name);
    None
}
