//! What pods and requests say.

use kruise_api::names::sidecarterminator::{
    SIDECAR_IGNORE_EXIT_CODE, TERMINATE_SIDECAR, TERMINATE_SIDECAR_WITH_IMAGE,
};

use super::super::start::VIRTUAL;
use crate::rules::prelude::*;

/// The containers of a pod.
pub fn containers(pod: &Object) -> impl Iterator<Item = &Value> {
    items(&pod.value()["spec"]["containers"])
}

/// The value of a variable of a container, or `""`.
fn variable<'c>(container: &'c Value, name: &str) -> &'c str {
    let mut all = items(&container["env"]);
    let found = all.find(|one| one["name"] == name);
    found.and_then(|one| one["value"].as_str()).unwrap_or_default()
}

/// Is it a container that ends with the main ones?
pub fn is_sidecar(container: &Value) -> bool {
    variable(container, TERMINATE_SIDECAR) == "true"
}

/// Does its exit code not count?
pub fn is_ignored(container: &Value) -> bool {
    is_sidecar(container) && variable(container, SIDECAR_IGNORE_EXIT_CODE) == "true"
}

/// The image that a sidecar gets on a virtual node.
pub fn last_image(container: &Value) -> &str {
    variable(container, TERMINATE_SIDECAR_WITH_IMAGE)
}

/// Is the pod on the virtual node?
pub fn is_on_virtual(pod: &Object) -> bool {
    pod.value()["spec"]["nodeName"] == VIRTUAL
}

/// With which code a container has ended that has not begun anew.
pub fn code(pod: &Object, name: &Value) -> Option<i64> {
    let mut statuses = items(&pod.value()["status"]["containerStatuses"]);
    let status = statuses.find(|status| status["name"] == *name)?;
    status["state"]["terminated"]["exitCode"].as_i64()
}

/// The exit codes of the main containers, once all have ended.
pub fn codes_of_mains(pod: &Object) -> Option<Vec<i64>> {
    let mains = containers(pod).filter(|one| !is_sidecar(one));
    mains.map(|main| code(pod, &main["name"])).collect()
}

/// Have all main containers ended for good? That is never taken back.
pub fn have_mains_ended(pod: &Object) -> bool {
    let is_never_restarted = pod.value()["spec"]["restartPolicy"] == "Never";
    let codes = codes_of_mains(pod);
    codes.is_some_and(|codes| is_never_restarted || codes.iter().all(|code| *code == 0))
}

/// The phase that the main containers have earned, once all have ended.
pub fn earned_phase(pod: &Object) -> Option<&'static str> {
    let codes = codes_of_mains(pod)?;
    let have_succeeded = codes.iter().all(|code| *code == 0);
    Some(if have_succeeded { "Succeeded" } else { "Failed" })
}

/// Have all sidecars ended whose exit codes count?
pub fn have_others_ended(pod: &Object) -> bool {
    let mut others = containers(pod).filter(|one| is_sidecar(one) && !is_ignored(one));
    others.all(|one| code(pod, &one["name"]).is_some())
}

/// Has the pod ended?
pub fn phase(pod: &Object) -> Option<&str> {
    let phase = pod.value()["status"]["phase"].as_str()?;
    matches!(phase, "Succeeded" | "Failed").then_some(phase)
}

/// Versions of the pod of this uid that the sender of a write may have believed, and the newest one.
pub fn believed<'m>(
    write: &Write<'_>,
    mirror: &'m Mirror,
    uid: &str,
) -> Option<(&'m [Arc<Object>], &'m Object)> {
    let versions = mirror.of(PODS).window(uid, write.sent.floors.of(PODS));
    Some((versions, versions.last()?))
}
