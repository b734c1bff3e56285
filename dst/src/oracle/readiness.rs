//! *"Out of service before its image changes, for as long as the grace period says, and in service again only when the
//! new one runs."*

use jiff::Timestamp;

use super::{Violation, Write};
use crate::{history::Watched, mirror::Mirror, object::Object};

const GATE: &str = "InPlaceUpdateReady";

/// Judges changes of a pod's images, and of its readiness gate.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    let [before, after] = write.pod(mirror)?;
    if before.images() != after.images() && (before.state(GATE) != "False" || before.state("Ready") == "True")
    {
        let what = format!(
            "{} changed the image of {} while it was in service",
            write.process, after.name
        );
        return Some(Violation {
            oracle: "out of service first",
            what,
        });
    }
    if before.images() != after.images()
        && let Some(seconds) = early(before, mirror, write.now)
    {
        let what = format!(
            "{} changed the image of {} {seconds} s before its grace period was over",
            write.process, after.name
        );
        return Some(Violation {
            oracle: "grace first",
            what,
        });
    }
    let comes_back = before.state(GATE) == "False" && after.state(GATE) == "True";
    if comes_back && let Some(container) = unfinished(after) {
        let what = format!(
            "{} put {} into service before {container} ran its image",
            write.process, after.name
        );
        return Some(Violation {
            oracle: "in service when complete",
            what,
        });
    }
    None
}

/// How many seconds the grace period of a pod out of service still runs. Histories do not change it.
fn early(pod: &Object, mirror: &Mirror, now: Timestamp) -> Option<i64> {
    let set = mirror.of(Watched::Sets).now().next()?;
    let strategy = &set.value["spec"]["updateStrategy"]["rollingUpdate"]["inPlaceUpdateStrategy"];
    let grace = strategy["gracePeriodSeconds"].as_i64()?;
    let since = pod.condition(GATE)?["lastTransitionTime"].as_str()?;
    let since: Timestamp = since.parse().ok()?;
    let left = since.as_second() + grace - now.as_second();
    (left > 0).then_some(left)
}

/// A container that does not run what the specification says.
fn unfinished(pod: &Object) -> Option<&str> {
    let runs = |name: &str| {
        let statuses = pod.value["status"]["containerStatuses"].as_array();
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
