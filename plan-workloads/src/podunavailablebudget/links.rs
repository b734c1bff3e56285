//! The annotations by which pods name their budget.

use kruise_api::names::podunavailablebudget::{RELATED, RELATED_LEGACY};
use kruise_plan_kit::{
    Intent, ObjectWrites, Part,
    ledger::budget_of,
    pod_writes::{self, Guard},
};
use kruise_views::PodView;
use serde_json::json;

use super::snapshot::Snapshot;

/// The writes to pods that name no budget, or one that does not cover them. A pod of another budget is left to that one.
pub(super) fn writes(snapshot: &Snapshot<'_>) -> Vec<ObjectWrites> {
    let active = snapshot.pods.iter().filter(|pod| pod.is_active());
    let writes = active.filter_map(|pod| Some(link(snapshot, pod, &unlinked(snapshot, pod)?)));
    writes.collect()
}

/// Why a pod does not name the right budget; `None` if it does, or if another budget is the right one.
fn unlinked(snapshot: &Snapshot<'_>, pod: &PodView) -> Option<String> {
    match budget_of(pod) {
        Some(name) if name == snapshot.budget.metadata.name => None,
        _ if !(snapshot.is_first)(pod) => None,
        None => Some("it names no budget".to_owned()),
        Some(name) if (snapshot.covers)(name, pod) => None,
        Some(name) => Some(format!("the budget {name} that it names does not cover it")),
    }
}

fn link(snapshot: &Snapshot<'_>, pod: &PodView, reason: &str) -> ObjectWrites {
    let name = &snapshot.budget.metadata.name;
    let body = json!({"metadata": {"annotations": {RELATED: name, RELATED_LEGACY: name}}});
    let (intent, part) = (Intent::LinkBudget, Part::Main);
    let step = pod_writes::patch(pod, intent, part, body, Guard::SamePod, reason);
    ObjectWrites::of_pod(vec![step])
}
