//! The merge patch of what has changed in the status of a request.

use serde_json::{Map, Value, json};

use crate::request::{RequestStatus, RequestView};

/// The patch that makes the stored status this one; none if it is. It carries the UID, so that it does not reach a
/// successor. If it is `guarded`, it carries the version, too, and fails if anything has changed meanwhile.
pub(super) fn patch(view: &RequestView, after: &RequestStatus, guarded: bool) -> Option<Value> {
    let before = &view.status;
    let mut status = Map::new();
    if before.phase != after.phase {
        status.insert("phase".into(), json!(after.phase));
    }
    if before.completion_time != after.completion_time {
        status.insert("completionTime".into(), json!(after.completion_time));
    }
    if before.message != after.message {
        let message = Some(&after.message).filter(|message| !message.is_empty());
        status.insert("message".into(), json!(message));
    }
    if before.container_recreate_states != after.container_recreate_states {
        let states = json!(after.container_recreate_states);
        status.insert("containerRecreateStates".into(), states);
    }
    if status.is_empty() {
        return None;
    }
    let metadata = if guarded {
        json!({"uid": view.uid, "resourceVersion": view.resource_version})
    } else {
        json!({"uid": view.uid})
    };
    Some(json!({"metadata": metadata, "status": status}))
}
