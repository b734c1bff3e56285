//! How long pods stay on a node with taints `NoExecute`, and how they leave it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::object::{metadata_text, seconds};
use crate::scheduler::taints::toleration;
use crate::store::Key;
use crate::world::{Client, pod_path};

/// How long a pod may stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stay {
    /// It does not tolerate a taint.
    Not,
    /// It tolerates all of them, some for this long.
    For(Duration),
    /// It tolerates all of them.
    Forever,
}

impl Stay {
    /// How long, if there is an end.
    pub(super) fn seconds(self) -> Option<Duration> {
        match self {
            Self::Not => Some(Duration::ZERO),
            Self::For(time) => Some(time),
            Self::Forever => None,
        }
    }
}

/// How long a pod may stay on a node with these taints.
pub(super) fn stay(pod: &Value, taints: &[Value]) -> Stay {
    let mut stay = Stay::Forever;
    for taint in taints {
        let Some(toleration) = toleration(pod, taint) else {
            return Stay::Not;
        };
        let Some(seconds) = toleration.get("tolerationSeconds").and_then(Value::as_i64) else {
            continue;
        };
        let time = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
        stay = match stay {
            Stay::For(least) => Stay::For(least.min(time)),
            _ => Stay::For(time),
        };
    }
    stay
}

/// Deletes a pod, with the reason in its status.
pub(super) fn evict(client: &mut Client<'_>, key: &Key, pod: &Value, events: bool) {
    if events {
        let message = format!("Marking for deletion Pod {}/{}", key.namespace, key.name);
        let component = "taint-eviction-controller";
        client.event(pod, component, "Normal", "TaintManagerEviction", &message);
    }
    let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager",
        "message": "Taint manager: deleting due to NoExecute taint", "lastTransitionTime": seconds(client.now)});
    let uid = metadata_text(pod, "uid");
    client.strategic(
        &format!("{}/status", pod_path(key)),
        &json!({"metadata": {"uid": uid}, "status": {"conditions": [condition]}}),
    );
    client.delete(&pod_path(key), &json!({"preconditions": {"uid": uid}}));
}
