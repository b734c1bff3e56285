//! *"A resize is sent before the pod's write: had that come first, an update that nobody went on with would seem
//! over."* A pod that is labelled with a revision requests what that demands, unless it waits for the end of its
//! grace period: then the label comes first, and the resources when the wait is over.

use crate::engine::object::is_injected;
use crate::rules::prelude::*;

const GRACE: &str = "apps.kruise.io/inplace-update-grace";

/// Judges writes that move a pod to a revision, that end its grace period, or that report its arrival.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    let [before, after] = write.pod(mirror)?;
    let label = after.label(REVISION);
    let moves = before.label(REVISION) != label || waits(before);
    if moves
        && !waits(after)
        && let Some(revision) = mirror.of(REVISIONS).named(label)
    {
        let wanted = demands(revision);
        never!(write, "resources first",
            requested(after) != wanted
                => "moved {} to {label} before its containers requested {wanted:?}", after.name);
    }
    let arrives = before.label(STATE) == "Updating" && matches!(after.label(STATE), "Normal" | "Updated");
    // What an update that broke off has left requested is given back later, and not waited for.
    let revision = mirror.of(REVISIONS).named(label);
    let is_requested_by_its_own = revision.is_none_or(|revision| requested(after) == demands(revision));
    if arrives
        && has_begun(after)
        && is_requested_by_its_own
        && let Err(what) = given(after)
    {
        return write.breaks(
            "available when complete",
            format!("reported that {} had arrived: {what}", after.name),
        );
    }
    None
}

/// What a revision has containers request.
fn demands(revision: &Object) -> BTreeMap<&str, Value> {
    amounts(&revision.value()["data"]["spec"]["template"]["spec"])
}

/// Is a pod in its grace period?
fn waits(pod: &Object) -> bool {
    pod.annotations()[GRACE].is_string()
}

/// What a pod's containers request; injected ones do not count.
pub fn requested(pod: &Object) -> BTreeMap<&str, Value> {
    amounts(pod.spec())
}

/// What the containers of a specification request, by name.
pub fn amounts(spec: &Value) -> BTreeMap<&str, Value> {
    let containers = items(&spec["containers"]);
    let ours = containers.filter(|one| !is_injected(one));
    ours.map(|one| (text(&one["name"]), members(&one["resources"])))
        .collect()
}

/// Requests and limits; what is empty is absent.
fn members(resources: &Value) -> Value {
    let lists =
        ["requests", "limits"].map(|list| resources[list].as_object().filter(|list| !list.is_empty()));
    serde_json::json!(lists)
}

/// Does each container have what it requests?
pub fn given(pod: &Object) -> Result<(), String> {
    let requested = requested(pod);
    let given: BTreeMap<&str, Value> = items(&pod.status()["containerStatuses"])
        .map(|one| (text(&one["name"]), members(&one["resources"])))
        .filter(|(name, _)| requested.contains_key(name))
        .collect();
    if given == requested {
        Ok(())
    } else {
        Err(format!("its containers request {requested:?} and have {given:?}"))
    }
}

/// Has the node reported a container of the pod? Before that the pod is not available, whatever its labels and its
/// readiness gate say.
pub fn has_begun(pod: &Object) -> bool {
    let statuses = pod.status()["containerStatuses"].as_array();
    statuses.is_some_and(|statuses| !statuses.is_empty())
}
