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

/// A pod names the budget that protects it.
const LINK_BUDGET: Intent = Intent::of_update("link-budget");
/// A pod that no budget covers any more names none.
const UNLINK_BUDGET: Intent = Intent::of_update("unlink-budget");

/// The writes to pods that name no budget, or one that does not cover them. A pod of another budget is left to that
/// one. A pod that names this budget, and that no budget covers any more, is to name none: its budget would refuse
/// its deletion, and would be charged for it.
pub(super) fn writes(snapshot: &Snapshot<'_>) -> Vec<ObjectWrites> {
    let active = snapshot.pods.iter().filter(|pod| pod.is_active());
    let links = active.filter_map(|pod| Some(link(snapshot, pod, &unlinked(snapshot, pod)?)));
    let unlinks = snapshot.uncovered.iter().map(|pod| unlink(pod));
    links.chain(unlinks).collect()
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
    let (intent, part) = (LINK_BUDGET, Part::Main);
    let step = pod_writes::patch(pod, intent, part, body, Guard::SamePod, reason);
    ObjectWrites::of_pod(vec![step])
}

/// For this version of the pod only: a newer one may be covered.
fn unlink(pod: &PodView) -> ObjectWrites {
    let body = json!({"metadata": {"annotations": {RELATED: null, RELATED_LEGACY: null}}});
    let (intent, part) = (UNLINK_BUDGET, Part::Main);
    let reason = "no budget covers it";
    let step = pod_writes::patch(pod, intent, part, body, Guard::Unchanged, reason);
    ObjectWrites::of_pod(vec![step])
}
