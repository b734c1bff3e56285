//! *"A container changes when those before it in the order are ready, and a pod becomes available when all have
//! changed."* In scenarios `main` goes before `side`.

use crate::rules::prelude::*;

const PROGRESS: &str = "apps.kruise.io/inplace-update-state";

/// Judges changes of images, and writes that report the last of them.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    let [before, after] = write.pod(mirror)?;
    let changed = |name: &str| image(before.spec(), name) != image(after.spec(), name);
    let arrives = before.label(STATE) == "Updating" && matches!(after.label(STATE), "Normal" | "Updated");
    let comes_back = before.state(GATE) == "False" && after.state(GATE) == "True";
    let follows = changed("side");
    if !follows && !arrives && !comes_back {
        return None;
    }
    let revision = mirror.of(REVISIONS).named(after.label(REVISION))?;
    let template = &revision.value()["data"]["spec"]["template"]["spec"];
    let differs = |name: &str| image(after.spec(), name) != image(template, name);
    let order = "one batch after the other";
    never!(write, order, follows && changed("main") => "both containers change at once");
    never!(write, order,
        follows && (differs("main") || (was_before(after) && !is_ready(after)))
            => "side changes before main is ready");
    let missing = ["main", "side"].into_iter().find(|name| differs(name));
    never!(write, "available when complete",
        some name in missing.filter(|_| arrives || comes_back) => "{name} has not changed yet");
    None
}

fn image<'a>(spec: &'a Value, name: &str) -> Option<&'a str> {
    let found = named(&spec["containers"], name);
    found?["image"].as_str()
}

/// Did `main` change in an earlier batch of this update?
fn was_before(pod: &Object) -> bool {
    let progress = text(&pod.annotations()[PROGRESS]);
    let progress: Value = serde_json::from_str(progress).unwrap_or_default();
    let mut batches = items(&progress["containerBatchesRecord"]);
    batches.any(|batch| items(&batch["containers"]).any(|name| name == "main"))
}

/// Is `main` ready with its image?
fn is_ready(pod: &Object) -> bool {
    let found = named(&pod.status()["containerStatuses"], "main");
    found.is_some_and(|one| one["ready"] == true && one["image"].as_str() == image(pod.spec(), "main"))
}
