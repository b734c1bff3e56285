//! *"An agent stops sidecars only, once all main containers have ended."*

use kruise_sim::runtime::Call;
use serde_json::Value;

use super::known::{containers, have_mains_ended, is_sidecar, items};
use crate::engine::oracles::{Mirror, Object, PODS, RuntimeCall, Violation};

/// Judges a call of a runtime.
pub fn judge(call: &RuntimeCall<'_>, mirror: &Mirror) -> Option<Violation> {
    let Call::StopContainer { container, .. } = call.call else {
        return None;
    };
    let violation = |oracle, what: String| {
        let what = format!("{} stops {container} on {}: {what}", call.process, call.node);
        Some(Violation { oracle, what })
    };
    let (pod, name) = find(container, mirror)?;
    let mut all = containers(pod);
    if !all.any(|one| one["name"] == *name && is_sidecar(one)) {
        return violation(
            "a main container is never stopped",
            format!("it is {name} of {}", pod.name),
        );
    }
    if !have_mains_ended(pod) {
        let statuses = &pod.value()["status"]["containerStatuses"];
        return violation(
            "nothing is stopped before the main containers have ended",
            statuses.to_string(),
        );
    }
    None
}

/// The newest version of the pod that reported a container of this id, and the name of the container.
fn find<'m>(container: &str, mirror: &'m Mirror) -> Option<(&'m Object, &'m Value)> {
    let end = format!("://{container}");
    let name = |pod: &'m Object| {
        let mut statuses = items(&pod.value()["status"]["containerStatuses"]);
        let has_id = |one: &&Value| one["containerID"].as_str().unwrap_or_default().ends_with(&end);
        Some(&statuses.find(has_id)?["name"])
    };
    let mut pods = mirror.of(PODS).objects.values();
    pods.find_map(|versions| {
        let name = versions.iter().rev().find_map(|pod| name(pod))?;
        Some((&**versions.last()?, name))
    })
}
