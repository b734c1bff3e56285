//! What the set reports.

use kruise_api::sidecarset::SidecarSetStatus;
use kruise_plan_kit::{StatusPatch, Target, Urgency, status_patch};

use crate::{history::Found, pod::Pod, snapshot::Snapshot};

/// Counts pods; `None` if the stored status is the same. While conditions of pods are due, the generation that was
/// observed before stays: whoever waits for this one reads the conditions next.
pub(crate) fn report(
    snapshot: &Snapshot<'_>,
    found: &Found<'_>,
    pods: &[Pod<'_>],
    conditions_are_due: bool,
) -> Option<StatusPatch> {
    let set = snapshot.set;
    let before = set.status.observed_generation;
    let observed_generation = match conditions_are_due {
        // A first report without a generation would be repeated.
        true if before == 0 => return None,
        true => before,
        false => set.metadata.generation.max(before),
    };
    let count = |test: &dyn Fn(&Pod<'_>) -> bool| pods.iter().filter(|m| test(m)).count() as i32;
    let ready = |pod: &Pod<'_>| pod.consistent && pod.ready;
    let status = SidecarSetStatus {
        observed_generation,
        matched_pods: pods.len() as i32,
        updated_pods: count(&|pod| pod.updated),
        ready_pods: count(&ready),
        updated_ready_pods: count(&|pod| pod.updated && ready(pod)),
        latest_revision: found.name.clone(),
        collision_count: Some(found.collision_count),
    };
    let reported = before > 0;
    let urgency = Urgency {
        members: &["observedGeneration", "latestRevision", "collisionCount"],
        settled: status.updated_ready_pods == status.matched_pods,
    };
    let target = Target {
        resource: kruise_api::sidecarset::RESOURCE,
        namespace: String::new(),
        name: set.metadata.name.clone(),
    };
    let before = reported.then_some(&set.status);
    status_patch(target, &set.metadata.resource_version, before, &status, urgency)
}
