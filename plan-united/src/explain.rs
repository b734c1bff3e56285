//! Explanations of a plan.

use kruise_plan_kit::Why;

use crate::{scheduling::State, snapshot::Workload, workload::Share};

/// What a subset has and is to have.
pub(crate) fn subset(name: &str, workload: Option<&Workload>, state: State, share: Share) -> Why {
    let has = match workload {
        None => "has no workload yet".to_owned(),
        Some(workload) => format!(
            "has {} with {} pods, {} of them Ready",
            workload.view.name, workload.view.replicas, workload.view.ready
        ),
    };
    let mut text = format!("subset {name} {has}, and is to have {}", share.replicas);
    if share.partition > 0 {
        text = format!("{text}, of which {} stay at older revisions", share.partition);
    }
    if state.unschedulable {
        text = format!("{text}; it takes no further pods, because some could not be scheduled");
    }
    if state.reserved > 0 {
        text = format!(
            "{text}; {} pods are reserved and count for nothing",
            state.reserved
        );
    }
    Why::of_set(text)
}
