//! *"Status reports what was."* What one status counts fits together, and no status counts more than there ever was.

use std::sync::Arc;

use serde_json::Value;

use super::json::number;
use crate::engine::oracles::{Mirror, Object, PODS};

/// Two counts of one status that do not fit together: of each pair, the first counts some of those that the second
/// counts.
pub fn misfit(status: &Value, parts: &[(&str, &str)]) -> Option<String> {
    parts.iter().find_map(|(part, whole)| {
        let (few, many) = (number(&status[*part]), number(&status[*whole]));
        (few > many && !status[*whole].is_null()).then(|| format!("{part} {few} of {whole} {many}"))
    })
}

/// A count of a status that is above the most that there ever were.
pub fn exaggerated<'n>(status: &Value, counts: impl IntoIterator<Item = (&'n str, i64)>) -> Option<String> {
    counts.into_iter().find_map(|(name, most)| {
        let reported = number(&status[name]);
        (reported > most).then(|| format!("{name} {reported}, but there were never more than {most}"))
    })
}

/// How many pods of an owner ever were so. The newest versions are the likeliest to answer that.
pub fn ever(mirror: &Mirror, owner: &str, were: impl Fn(&Object) -> bool) -> i64 {
    pods(mirror, owner, were).count() as i64
}

/// A count of a status that is above the number of pods of an owner that ever were so.
pub fn overcounted(status: &Value, mirror: &Mirror, owner: &str, counts: &[Counted<'_>]) -> Option<String> {
    counts.iter().find_map(|(name, were)| {
        let reported = number(&status[*name]);
        // Whether there were as many as reported is the question.
        let most = pods(mirror, owner, were).take(reported.max(0) as usize).count() as i64;
        (reported > most).then(|| format!("{name} {reported}, but there were never more than {most}"))
    })
}

/// A count of a status, and the pods that it counts.
pub type Counted<'c> = (&'c str, &'c dyn Fn(&Object) -> bool);

fn pods<'m>(
    mirror: &'m Mirror,
    owner: &str,
    were: impl Fn(&Object) -> bool,
) -> impl Iterator<Item = &'m Vec<Arc<Object>>> {
    let so = move |pod: &Arc<Object>| were(pod) && pod.owner() == owner;
    let pods = mirror.of(PODS).objects.values();
    pods.filter(move |versions| versions.iter().rev().any(&so))
}
