//! *"A container changes when those before it in the order are ready, and a pod becomes available when all have
//! changed."* In scenarios `main` goes before `side`.

use serde_json::Value;

use crate::engine::oracles::{Mirror, Object, REVISIONS, Violation, Write};
use crate::subjects::labels::{GATE, REVISION, STATE};

const PROGRESS: &str = "apps.kruise.io/inplace-update-state";

/// Judges changes of images, and writes that report the last of them.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    let [before, after] = write.pod(mirror)?;
    let changed = |name: &str| image(&before.value()["spec"], name) != image(&after.value()["spec"], name);
    let arrives = before.label(STATE) == "Updating" && matches!(after.label(STATE), "Normal" | "Updated");
    let comes_back = before.state(GATE) == "False" && after.state(GATE) == "True";
    let follows = changed("side");
    if !follows && !arrives && !comes_back {
        return None;
    }
    let revision = mirror.of(REVISIONS).named(after.label(REVISION))?;
    let template = &revision.value()["data"]["spec"]["template"]["spec"];
    let differs = |name: &str| image(&after.value()["spec"], name) != image(template, name);
    let violation = |oracle, what: &str| {
        let what = format!("{} wrote {}: {what}", write.process, after.name);
        Some(Violation { oracle, what })
    };
    let order = "one batch after the other";
    if follows && changed("main") {
        return violation(order, "both containers change at once");
    }
    if follows && (differs("main") || (was_before(after) && !is_ready(after))) {
        return violation(order, "side changes before main is ready");
    }
    let missing = ["main", "side"].into_iter().find(|name| differs(name));
    if (arrives || comes_back)
        && let Some(name) = missing
    {
        return violation("available when complete", &format!("{name} has not changed yet"));
    }
    None
}

fn image<'a>(spec: &'a Value, name: &str) -> Option<&'a str> {
    let containers = spec["containers"].as_array();
    let found = containers.into_iter().flatten().find(|one| one["name"] == name);
    found?["image"].as_str()
}

/// Did `main` change in an earlier batch of this update?
fn was_before(pod: &Object) -> bool {
    let text = pod.value()["metadata"]["annotations"][PROGRESS].as_str();
    let progress: Option<Value> = text.and_then(|text| serde_json::from_str(text).ok());
    let batches = progress
        .as_ref()
        .and_then(|state| state["containerBatchesRecord"].as_array());
    let mut batches = batches.into_iter().flatten();
    batches.any(|batch| {
        batch["containers"]
            .as_array()
            .is_some_and(|names| names.contains(&"main".into()))
    })
}

/// Is `main` ready with its image?
fn is_ready(pod: &Object) -> bool {
    let statuses = pod.value()["status"]["containerStatuses"].as_array();
    let found = statuses.into_iter().flatten().find(|one| one["name"] == "main");
    found.is_some_and(|one| {
        one["ready"] == true && one["image"].as_str() == image(&pod.value()["spec"], "main")
    })
}
