//! The order of decisions.

use std::time::Duration;

use jiff::Timestamp;
use kruise_api::{
    names::nodeimage::FAKE_NODE_IMAGE,
    nodeimage::{KIND, NodeImage},
};
use kruise_plan_kit::{Intent, ObjectWrites, Phase, Plan, Precondition, Target, Write, jobs, put};
use kruise_views::NodeView;
use serde_json::json;

use super::{overdue, snapshot::Snapshot, tidy};

/// A node gets the object that lists its images.
const CREATE_NODE_IMAGE: Intent = Intent::untold("create-node-image");
/// The list of images of a node that is gone is deleted.
const DELETE_NODE_IMAGE: Intent = Intent::untold("delete-node-image");

/// Decides what the NodeImage of a node needs now.
pub fn plan(snapshot: &Snapshot<'_>, now: Timestamp) -> Plan {
    let node = snapshot.node.filter(|node| !node.deleting);
    match (snapshot.image, node) {
        (Some(image), None) => leave(image),
        (Some(image), Some(node)) => keep(snapshot, image, node, now),
        (None, Some(node)) => create(snapshot, node, now),
        (None, None) => Plan::default(),
    }
}

/// Where a NodeImage is.
pub(super) fn target(name: &str) -> Target {
    Target {
        resource: kruise_api::nodeimage::RESOURCE,
        namespace: String::new(),
        name: name.to_owned(),
    }
}

/// How long it is until the node gets a NodeImage: `None` if it gets none as it is, zero if it is time.
pub fn is_due(node: &NodeView, delay: Duration, now: Timestamp) -> Option<Duration> {
    if node.is_virtual() || !node.ready || node.deleting {
        return None;
    }
    let seconds = i64::try_from(delay.as_secs()).unwrap_or(i64::MAX);
    // A condition without a time has been there for as long as anybody knows.
    let left = node.ready_since.and_then(|since| jobs::left(since, seconds, now));
    // A clock that is behind the node's must not wait for longer.
    Some(left.unwrap_or_default().min(delay))
}

/// Creates the NodeImage of a node that has been ready for long enough.
fn create(snapshot: &Snapshot<'_>, node: &NodeView, now: Timestamp) -> Plan {
    let Some(left) = is_due(node, snapshot.options.creation_delay, now) else {
        return Plan::default();
    };
    if !left.is_zero() {
        return Plan {
            requeue: Some(left),
            ..Plan::default()
        };
    }
    let mut body = json!({
        "apiVersion": snapshot.api_version,
        "kind": KIND.kind,
        "metadata": {"name": snapshot.name},
        "spec": {},
    });
    for (key, value) in node.labels.iter() {
        put(&mut body, &["metadata", "labels", key], value.into());
    }
    let write = Write::Create {
        intent: CREATE_NODE_IMAGE,
        target: target(snapshot.name),
        body: body.into(),
        owner_uid: None,
    };
    Plan {
        writes: vec![ObjectWrites::alone(Phase::Pods, write, "its node is ready")],
        ..Plan::default()
    }
}

/// Deletes the NodeImage of a node that is gone.
fn leave(image: &NodeImage) -> Plan {
    let metadata = &image.metadata;
    let stays = metadata.labels.contains_key(FAKE_NODE_IMAGE) || metadata.deletion_timestamp.is_some();
    if stays {
        return Plan::default();
    }
    let write = Write::Delete {
        intent: DELETE_NODE_IMAGE,
        target: target(&metadata.name),
        precondition: Precondition::Uid(metadata.uid.clone()),
    };
    Plan {
        writes: vec![ObjectWrites::alone(Phase::Cleanup, write, "its node is gone")],
        ..Plan::default()
    }
}

fn keep(snapshot: &Snapshot<'_>, image: &NodeImage, node: &NodeView, now: Timestamp) -> Plan {
    if image.metadata.deletion_timestamp.is_some() {
        return Plan::default();
    }
    let mut plan = Plan::default();
    let tidied = tidy::tidy(snapshot, image, node, &mut plan, now);
    if let Some(writes) = tidied {
        plan.requeue = None;
        plan.writes.push(writes);
        return plan;
    }
    overdue::judge(image, &mut plan, now);
    plan
}
