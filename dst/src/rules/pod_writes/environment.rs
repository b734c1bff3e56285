//! *"A container whose environment reads an annotation that changed in place is restarted, and the update is
//! complete when it runs with the new value."*

use crate::rules::prelude::*;

/// The annotation that containers of scenarios read, and the variable that reads it.
const KEY: &str = "config";
const VARIABLE: &str = "CONFIG";

/// Judges writes that report that a pod was updated, or that make it available again.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    let [before, after] = write.pod(mirror)?;
    let arrives = before.label(STATE) == "Updating" && matches!(after.label(STATE), "Normal" | "Updated");
    let comes_back = before.state(GATE) == "False" && after.state(GATE) == "True";
    if !arrives && !comes_back {
        return None;
    }
    let what = read(after, mirror).err()?;
    write.breaks(
        "available when complete",
        format!("reported that {} was updated: {what}", after.name),
    )
}

/// Did the container that runs begin while the annotation had the value that it has? Times of runs are in seconds.
pub fn read(pod: &Object, mirror: &Mirror) -> Result<(), String> {
    let value = |object: &Object| object.annotations()[KEY].clone();
    let wanted = value(pod);
    let variables = items(&pod.spec()["containers"]).filter_map(|one| one["env"].as_array());
    if !variables.flatten().any(|one| one["name"] == VARIABLE) {
        return Ok(());
    }
    let main = named(&pod.status()["containerStatuses"], "main");
    let began = main.and_then(|one| one["state"]["running"]["startedAt"].as_str()?.parse().ok());
    // What begins later reads what is there then.
    let Some(began): Option<Timestamp> = began else {
        return Ok(());
    };
    let versions = mirror.of(PODS).objects.get(&pod.uid);
    let versions: &[Arc<Object>] = versions.map(Vec::as_slice).unwrap_or_default();
    let until = versions.partition_point(|one| one.at.as_second() <= began.as_second());
    let from = versions.partition_point(|one| one.at.as_second() < began.as_second());
    let then = versions.get(from.saturating_sub(1)..until).unwrap_or_default();
    if then.iter().any(|one| value(one) == wanted) {
        return Ok(());
    }
    Err(format!(
        "its container began at {began}, before {KEY} was {wanted}"
    ))
}
