//! Writes of the NodeImage's status.
//!
//! The agent and a manager both write this status. A patch names the members that change, and the tags of the
//! images that change. It carries the UID, so that the status of a node that is gone does not reach its successor.
//! It carries no version: the agent knows best how its pulls go, and what a manager has written meanwhile of
//! another image stays.

use serde_json::{Map, Value, json};

use crate::Effect;
use crate::call::Call;
use crate::node_image::{NodeImageStatus, NodeImageView};
use crate::status_writer::StatusWriter;

/// Writes what differs, if anything does.
pub(super) fn write(
    writer: &mut StatusWriter<NodeImageStatus>,
    object: &NodeImageView,
    status: NodeImageStatus,
    call: &mut Call<'_>,
) {
    let patch = difference(writer.stored(), &status);
    writer.settle();
    if patch.is_empty() {
        return;
    }
    writer.begin(&object.uid, status, call.now);
    let patch = json!({"metadata": {"uid": object.uid}, "status": patch});
    call.emit(Effect::PatchNodeImageStatus {
        name: object.name.clone(),
        patch,
    });
}

/// The members of a merge patch that makes one status the other.
fn difference(before: Option<&NodeImageStatus>, after: &NodeImageStatus) -> Map<String, Value> {
    let mut patch = Map::new();
    let none = NodeImageStatus::default();
    let is_first = before.is_none();
    let before = before.unwrap_or(&none);
    let counts = [
        ("desired", before.desired, after.desired),
        ("succeeded", before.succeeded, after.succeeded),
        ("failed", before.failed, after.failed),
        ("pulling", before.pulling, after.pulling),
        ("waiting", before.waiting, after.waiting),
    ];
    let mut images = Map::new();
    for (name, image) in &after.image_statuses {
        if before.image_statuses.get(name) != Some(image) {
            images.insert(name.to_string(), json!(image));
        }
    }
    for name in before.image_statuses.keys() {
        if !after.image_statuses.contains_key(name) {
            images.insert(name.to_string(), Value::Null);
        }
    }
    if !images.is_empty() {
        patch.insert("imageStatuses".into(), images.into());
    }
    if before.first_sync_status != after.first_sync_status && after.first_sync_status.is_some() {
        patch.insert("firstSyncStatus".into(), json!(after.first_sync_status));
    }
    // A definition asks for all counts of a status that is written for the first time.
    let is_new = is_first && !patch.is_empty();
    for (name, before, after) in counts {
        if is_new || before != after {
            patch.insert(name.into(), after.into());
        }
    }
    patch
}
