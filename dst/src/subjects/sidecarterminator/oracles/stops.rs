//! *"An agent stops sidecars only, once all main containers have ended."*

use kruise_sim::runtime::Call;

use super::known::{containers, have_mains_ended, is_sidecar};
use crate::rules::prelude::*;

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
    never!(violation, "a main container is never stopped",
        !all.any(|one| one["name"] == *name && is_sidecar(one)) => "it is {name} of {}", pod.name);
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
        let has_id = |one: &&Value| text(&one["containerID"]).ends_with(&end);
        Some(&statuses.find(has_id)?["name"])
    };
    let mut pods = mirror.of(PODS).objects.values();
    pods.find_map(|versions| {
        let name = versions.iter().rev().find_map(|pod| name(pod))?;
        Some((&**versions.last()?, name))
    })
}
