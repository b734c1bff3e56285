//! *"Unavailable before its image changes, for as long as the grace period lasts, and available again only when the new
//! one runs."*

use jiff::Timestamp;

use serde_json::Value;

use super::resources::{self, has_begun};
use crate::engine::oracles::{Log, Mirror, Object, Resource, Violation, Write};
use crate::subjects::labels::GATE;

/// Judges changes of a pod's images, and of its readiness gate.
pub fn judge(write: &Write<'_>, mirror: &Mirror, workload: Resource) -> Option<Violation> {
    let [before, after] = write.pod(mirror)?;
    let violation = |oracle, what: String| {
        let what = format!("{} {what}", write.process);
        Some(Violation { oracle, what })
    };
    let name = &after.name;
    let serves = before.state(GATE) != "False" || before.state("Ready") == "True";
    let changes = before.images() != after.images();
    if changes && serves {
        let what = format!("changed the image of {name} while it was available");
        return violation("unavailable first", what);
    }
    if changes && let Some(seconds) = early(before, mirror.of(workload), write.now) {
        let what = format!("changed the image of {name} {seconds} s before its grace period was over");
        return violation("grace first", what);
    }
    if serves && let Some(container) = restarts(before, after) {
        let what = format!(
            "gave {container} of {name} other resources, for which it restarts, while it was available"
        );
        return violation("unavailable first", what);
    }
    let comes_back = before.state(GATE) == "False" && after.state(GATE) == "True";
    if comes_back
        && has_begun(after)
        && let Some(container) = unfinished(after)
    {
        let what = format!("made {name} available before {container} ran its image");
        return violation("available when complete", what);
    }
    if comes_back && !after.have_started(write.now) {
        let what = format!("made {name} available on a report of the container before");
        return violation("available when complete", what);
    }
    None
}

/// A container that was given another share of a processor, for which it restarts.
fn restarts<'a>(before: &Object, after: &'a Object) -> Option<&'a str> {
    let containers = |pod: &'a Object| pod.value()["spec"]["containers"].as_array().into_iter().flatten();
    let requested = resources::requested(before);
    let restarts = |one: &&Value| {
        let mut policies = one["resizePolicy"].as_array().into_iter().flatten();
        policies
            .any(|policy| policy["resourceName"] == "cpu" && policy["restartPolicy"] == "RestartContainer")
    };
    let names = containers(after)
        .filter(restarts)
        .filter_map(|one| one["name"].as_str());
    let now = resources::requested(after);
    let mut changed = names.filter(|name| requested.get(name) != now.get(name));
    changed.next()
}

/// How many seconds the grace period of an unavailable pod still lasts. Scenarios do not change it.
fn early(pod: &Object, workloads: &Log, now: Timestamp) -> Option<i64> {
    let set = workloads.now().next()?;
    let strategy = &set.value()["spec"]["updateStrategy"]["rollingUpdate"]["inPlaceUpdateStrategy"];
    let grace = strategy["gracePeriodSeconds"].as_i64()?;
    let since = pod.condition(GATE)?["lastTransitionTime"].as_str()?;
    let since: Timestamp = since.parse().ok()?;
    let left = since.as_second() + grace - now.as_second();
    (left > 0).then_some(left)
}

/// A container that does not run what the specification says.
fn unfinished(pod: &Object) -> Option<&str> {
    let runs = |name: &str| {
        let statuses = pod.value()["status"]["containerStatuses"].as_array();
        statuses
            .into_iter()
            .flatten()
            .find(|one| one["name"] == name)
            .and_then(|one| one["image"].as_str())
    };
    pod.images()
        .into_iter()
        .find(|(name, image)| runs(name) != Some(*image))
        .map(|(name, _)| name)
}
