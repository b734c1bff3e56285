//! The order of decisions.

use kruise_api::nodepodprobe::{KIND, NodePodProbe};
use kruise_plan_kit::{Intent, ObjectWrites, Phase, Plan, Precondition, Write};
use kruise_views::NodeView;
use serde_json::json;

use super::{results, snapshot::Snapshot, tidy};
use crate::probes;

/// A node gets the object that lists its probes.
const CREATE_NODE_POD_PROBE: Intent = Intent::of_update("create-node-pod-probe");
/// The list of probes of a node that is gone is deleted.
const DELETE_NODE_POD_PROBE: Intent = Intent::of_update("delete-node-pod-probe");

/// Decides what the NodePodProbe of a node needs now, and the pods that it has results of.
pub fn plan(snapshot: &Snapshot<'_>) -> Plan {
    let node = snapshot.node.filter(|node| !node.deleting);
    let mut plan = Plan::default();
    match (snapshot.probes, node) {
        (Some(probes), _) if probes.metadata.deletion_timestamp.is_some() => {}
        (Some(probes), None) => plan.writes.push(delete(probes)),
        (Some(probes), Some(_)) => {
            plan.writes.extend(tidy::tidy(snapshot, probes));
            results::apply(snapshot, probes, &mut plan);
        }
        (None, Some(node)) => plan.writes.extend(create(snapshot, node)),
        (None, None) => {}
    }
    plan
}

/// Creates the NodePodProbe of a node that is ready and has an agent.
fn create(snapshot: &Snapshot<'_>, node: &NodeView) -> Option<ObjectWrites> {
    if !node.ready || node.is_virtual() {
        return None;
    }
    let body = json!({
        "apiVersion": snapshot.api_version,
        "kind": KIND.kind,
        "metadata": {"name": snapshot.name},
        "spec": {},
    });
    let write = Write::Create {
        intent: CREATE_NODE_POD_PROBE,
        target: probes::target(snapshot.name),
        body: body.into(),
        owner_uid: None,
    };
    Some(ObjectWrites::alone(Phase::Pods, write, "its node is ready"))
}

/// Deletes the NodePodProbe of a node that is gone.
fn delete(probes: &NodePodProbe) -> ObjectWrites {
    let metadata = &probes.metadata;
    let write = Write::Delete {
        intent: DELETE_NODE_POD_PROBE,
        target: crate::probes::target(&metadata.name),
        precondition: Precondition::Uid(metadata.uid.clone()),
    };
    ObjectWrites::alone(Phase::Cleanup, write, "its node is gone")
}
