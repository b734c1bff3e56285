//! What the set reports.

use kruise_api::sidecarset::SidecarSetStatus;
use kruise_plan_kit::{ResourceId, StatusPatch, Target};
use serde_json::{Map, Value, json};

use crate::{history::Found, member::Member, observe::Observed};

/// Counts pods; `None` if what is stored says the same.
pub(crate) fn report(observed: &Observed<'_>, found: &Found, members: &[Member<'_>]) -> Option<StatusPatch> {
    let set = observed.set;
    let count = |test: &dyn Fn(&Member<'_>) -> bool| members.iter().filter(|m| test(m)).count() as i32;
    let ready = |member: &Member<'_>| member.consistent && member.ready;
    let status = SidecarSetStatus {
        observed_generation: set.metadata.generation.max(set.status.observed_generation),
        matched_pods: members.len() as i32,
        updated_pods: count(&|member| member.updated),
        ready_pods: count(&ready),
        updated_ready_pods: count(&|member| member.updated && ready(member)),
        latest_revision: found.name.clone(),
        collision_count: Some(found.collision_count),
    };
    // The first report names every member: the server demands the counts, zero or not.
    let reported = set.status.observed_generation > 0;
    let before = if reported { object(&set.status) } else { Map::new() };
    let after = object(&status);
    let gone = before.keys().filter(|key| !after.contains_key(*key));
    let mut changed: Map<String, Value> = gone.map(|key| (key.clone(), Value::Null)).collect();
    let other = after
        .iter()
        .filter(|(key, value)| before.get(*key) != Some(value));
    changed.extend(other.map(|(key, value)| (key.clone(), value.clone())));
    if changed.is_empty() {
        return None;
    }
    let weighty = ["observedGeneration", "latestRevision", "collisionCount"];
    let done = status.updated_ready_pods == status.matched_pods;
    Some(StatusPatch {
        target: Target {
            resource: ResourceId::SIDECARSETS,
            namespace: String::new(),
            name: set.metadata.name.clone(),
        },
        version: set.metadata.resource_version.clone(),
        urgent: done || weighty.iter().any(|key| changed.contains_key(*key)),
        patch: json!({"status": changed}),
    })
}

fn object(status: &SidecarSetStatus) -> Map<String, Value> {
    match serde_json::to_value(status) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    }
}
