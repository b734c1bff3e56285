//! Pod readiness: a pod that carries the `KruisePodReady` gate starts with its condition True, so that the gate holds
//! nothing up until somebody asks it to.
//!
//! # What it promises
//! - A condition that exists, whatever its status, is never touched: whoever set it False sets it True again.
//! - Pods of a CloneSet, a DaemonSet or a StatefulSet are left to that set's own plan, which sets the condition
//!   together with the others in one request.

use jiff::Timestamp;
use kruise_api::names::{APPS_GROUP, KRUISE_POD_READY};
use kruise_plan_kit::{
    Intent, ObjectWrites, Part, Plan,
    lifecycle::go_time,
    pod_writes::{self, Guard},
};
use kruise_views::PodView;
use serde_json::json;

/// Kinds whose plans set the condition themselves.
const PLANNED: [&str; 3] = ["CloneSet", "DaemonSet", "StatefulSet"];

/// Does this pod need anything from this controller?
pub fn concerns(pod: &PodView) -> bool {
    let planned = pod
        .controller
        .as_ref()
        .is_some_and(|owner| &*owner.group == APPS_GROUP && PLANNED.contains(&&*owner.kind));
    pod.has_gate(KRUISE_POD_READY) && pod.condition(KRUISE_POD_READY).is_none() && !pod.deleting && !planned
}

/// Sets the missing condition.
pub fn plan(pod: &PodView, now: Timestamp) -> Plan {
    if !concerns(pod) {
        return Plan::default();
    }
    let condition = json!({"type": KRUISE_POD_READY, "status": "True", "lastTransitionTime": go_time(now)});
    let body = json!({"status": {"conditions": [condition]}});
    let reason = "its gate has no condition yet";
    let (intent, part) = (Intent::MARK_READY, Part::Status);
    let step = pod_writes::patch(pod, intent, part, body, Guard::SamePod, reason);
    Plan {
        writes: vec![ObjectWrites::of_pod(vec![step])],
        ..Plan::default()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kruise_views::{ConditionView, OwnerView, PodView};

    use super::plan;

    fn pod() -> PodView {
        PodView {
            name: "p".into(),
            gates: Box::new(["KruisePodReady".into()]),
            ..PodView::default()
        }
    }

    fn writes(pod: &PodView) -> usize {
        plan(pod, Timestamp::UNIX_EPOCH).writes.len()
    }

    #[test]
    fn a_gate_without_a_condition_gets_one() {
        assert_eq!(writes(&pod()), 1);
    }

    #[test]
    fn a_pod_without_the_gate_with_the_condition_or_on_its_way_out_is_left_alone() {
        assert_eq!(
            writes(&PodView {
                gates: Box::default(),
                ..pod()
            }),
            0
        );
        assert_eq!(
            writes(&PodView {
                deleting: true,
                ..pod()
            }),
            0
        );
        let off = ConditionView {
            kind: "KruisePodReady".into(),
            ..ConditionView::default()
        };
        assert_eq!(
            writes(&PodView {
                conditions: Box::new([off]),
                ..pod()
            }),
            0
        );
    }

    #[test]
    fn pods_of_a_set_that_sets_the_condition_are_left_to_its_own_plan() {
        let owned = |group: &str, kind: &str| {
            let owner = OwnerView {
                group: group.into(),
                kind: kind.into(),
                ..OwnerView::default()
            };
            writes(&PodView {
                controller: Some(Box::new(owner)),
                ..pod()
            })
        };
        assert_eq!(owned("apps.kruise.io", "CloneSet"), 0);
        assert_eq!(owned("apps.kruise.io", "StatefulSet"), 0);
        assert_eq!(owned("apps.kruise.io", "DaemonSet"), 0);
        assert_eq!(owned("apps.kruise.io", "BroadcastJob"), 1);
        assert_eq!(owned("apps", "StatefulSet"), 1);
    }
}
