//! *"Unavailable before its image changes, for as long as the grace period lasts, and available again only when the new
//! one runs."*

use super::resources::{self, has_begun};
use crate::rules::prelude::*;

/// Judges changes of a pod's images, and of its readiness gate.
pub fn judge(write: &Write<'_>, mirror: &Mirror, workload: Resource) -> Option<Violation> {
    let [before, after] = write.pod(mirror)?;
    let serves = before.state(GATE) != "False" || before.state("Ready") == "True";
    let changes = before.images() != after.images();
    never!(write, "unavailable first", changes && serves => "another image while it was available");
    let early = early(before, mirror.of(workload), write.now).filter(|_| changes);
    never!(write, "grace first", some seconds in early => "another image {seconds} s before its grace period was over");
    never!(write, "unavailable first", some container in restarts(before, after).filter(|_| serves)
        => "other resources for {container}, which restarts for them, while it was available");
    let comes_back = before.state(GATE) == "False" && after.state(GATE) == "True";
    never!(write, "available when complete",
        some container in unfinished(after).filter(|_| comes_back && has_begun(after)) => "{container} runs another image");
    never!(write, "available when complete",
        comes_back && !after.have_started(write.now) => "on a report of the container before");
    None
}

/// A container that was given another share of a processor, for which it restarts.
fn restarts<'a>(before: &Object, after: &'a Object) -> Option<&'a str> {
    let containers = |pod: &'a Object| items(&pod.spec()["containers"]);
    let requested = resources::requested(before);
    let restarts = |one: &&Value| {
        let mut policies = items(&one["resizePolicy"]);
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
    let strategy = &set.spec()["updateStrategy"]["rollingUpdate"]["inPlaceUpdateStrategy"];
    let grace = strategy["gracePeriodSeconds"].as_i64()?;
    let since = time(&pod.condition(GATE)?["lastTransitionTime"])?;
    let left = since.as_second() + grace - now.as_second();
    (left > 0).then_some(left)
}

/// A container that does not run what the specification says.
fn unfinished(pod: &Object) -> Option<&str> {
    let runs =
        |name: &str| named(&pod.status()["containerStatuses"], name).and_then(|one| one["image"].as_str());
    let mut images = pod.images().into_iter();
    images
        .find(|(name, image)| runs(name) != Some(*image))
        .map(|(name, _)| name)
}
