//! *"Status reports what was."* What one status counts fits together, and no status counts more than there ever was.

use kruise_sim::Method;
use serde_json::Value;

use crate::engine::oracles::{Mirror, NODES, PODS, Violation, Write};
use crate::subjects::daemonset::start::DAEMONSETS;

/// Of each pair in one status, the first counts some of those that the second counts.
const PARTS: [(&str, &str); 5] = [
    ("currentNumberScheduled", "desiredNumberScheduled"),
    ("numberReady", "currentNumberScheduled"),
    ("numberAvailable", "numberReady"),
    ("updatedNumberScheduled", "currentNumberScheduled"),
    ("numberUnavailable", "desiredNumberScheduled"),
];

fn misfit(status: &Value) -> Option<String> {
    let count = |name: &str| status[name].as_i64().unwrap_or(0);
    let part = PARTS.iter().find(|(part, whole)| count(part) > count(whole));
    if let Some((part, whole)) = part {
        return Some(format!("{part} {} of {whole} {}", count(part), count(whole)));
    }
    let [desired, available, unavailable] =
        ["desiredNumberScheduled", "numberAvailable", "numberUnavailable"].map(count);
    (available + unavailable != desired)
        .then(|| format!("{available} available and {unavailable} unavailable of {desired}"))
}

/// Judges status writes.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != DAEMONSETS.plural || write.subresource != "status" || write.method != Method::Patch {
        return None;
    }
    let set = mirror.of(DAEMONSETS).now().next()?;
    let status = &set.value()["status"];
    let violation = |oracle, what: String| {
        let what = format!("{} reported {what}", write.process);
        Some(Violation { oracle, what })
    };
    if let Some(counts) = misfit(status) {
        return violation("status fits together", counts);
    }
    let count = |name: &str| status[name].as_i64().unwrap_or(0);
    let generation = set.value()["metadata"]["generation"].as_i64().unwrap_or(0);
    if count("observedGeneration") > generation {
        let observed = count("observedGeneration");
        return violation(
            "status reports what was",
            format!("generation {observed} of {generation}"),
        );
    }
    let mut names: Vec<&str> = mirror
        .of(NODES)
        .objects
        .values()
        .filter_map(|versions| Some(&*versions.first()?.name))
        .collect();
    names.sort_unstable();
    names.dedup();
    let pods = mirror
        .of(PODS)
        .objects
        .values()
        .filter(|versions| versions.iter().any(|pod| pod.owner() == &*set.uid));
    let limits = [
        ("desiredNumberScheduled", names.len()),
        ("currentNumberScheduled", pods.count()),
    ];
    let wrong = limits.into_iter().find_map(|(name, most)| {
        let reported = count(name);
        (reported > most as i64).then(|| format!("{name} {reported}, but there were never more than {most}"))
    })?;
    violation("status reports what was", wrong)
}
