//! Deletion costs: which pods go first when the workload is scaled in.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use kruise_api::{names::DELETION_COST, workloadspread::WorkloadSpreadSpec};
use kruise_plan_kit::{
    FailureNote, Intent, Part, Step,
    availability::service,
    injected::is_injected,
    order::{Candidate, sort_for_update},
    pod_writes::{Guard, patch},
};
use kruise_views::PodView;
use serde_json::json;

use super::groups::Group;
use super::reasons;

/// A pod's annotation says when it goes, compared to others of its workload.
const SET_DELETION_COST: Intent = Intent::of_update("set-deletion-cost");

/// The costs of active pods, by uid. None if the controller of the workload does not read them, or while its newest
/// version is not known.
pub(super) fn costs(
    spec: &WorkloadSpreadSpec,
    groups: &BTreeMap<String, Group<'_>>,
    limits: &[Option<i32>],
    latest: Option<&str>,
    now: Timestamp,
) -> BTreeMap<Box<str>, i64> {
    let kind = spec.target_ref.as_ref().map_or("", |target| &target.kind);
    let mut costs = BTreeMap::new();
    let (true, Some(latest)) = (matches!(kind, "Deployment" | "ReplicaSet" | "CloneSet"), latest) else {
        return costs;
    };
    for (version, group) in groups {
        of_group(group, limits, *version == latest, now, &mut costs);
    }
    costs
}

/// Old versions leave the first subset first.
fn of_group(
    group: &Group<'_>,
    limits: &[Option<i32>],
    is_latest: bool,
    now: Timestamp,
    costs: &mut BTreeMap<Box<str>, i64>,
) {
    let number = i64::try_from(limits.len()).unwrap_or(i64::MAX);
    for (index, limit) in limits.iter().enumerate() {
        let place = i64::try_from(index).unwrap_or(i64::MAX);
        let place = if is_latest { place } else { number - 1 - place };
        let mut active: Vec<&Arc<PodView>> = group.subset(index).filter(|pod| pod.is_active()).collect();
        sort_for_update(&mut active, |pod| Candidate {
            pod,
            service: service(pod, 0, now),
        });
        let most = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(0));
        let surplus = active.len().saturating_sub(most);
        for (rank, pod) in active.into_iter().enumerate() {
            let cost = if rank < surplus {
                -100 * (place + 1)
            } else {
                100 * (number - place)
            };
            costs.insert(pod.uid.clone(), cost);
        }
    }
    for pod in group.elsewhere().filter(|pod| pod.is_active()) {
        costs.insert(pod.uid.clone(), -100 * (number + 1));
    }
}

/// The write of a cost, if the pod has another one.
pub(super) fn step(pod: &PodView, cost: i64) -> Option<Step> {
    let value = cost.to_string();
    let has = pod.annotations.get(DELETION_COST);
    if has == Some(&*value) || has.is_some() && is_injected("CostKept") {
        return None;
    }
    let reason = format!("deletion cost {value} in its subset");
    let body = json!({"metadata": {"annotations": {DELETION_COST: value}}});
    let mut step = patch(pod, SET_DELETION_COST, Part::Main, body, Guard::SamePod, reason);
    let prefix = format!("cannot write the deletion cost of pod {}: ", pod.name);
    step.failed = Some(FailureNote::new(&reasons::PATCH_COST_FAILED, prefix));
    Some(step)
}
