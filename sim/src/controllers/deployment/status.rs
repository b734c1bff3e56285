//! What a deployment reports of itself.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{REVISION, Sets, bounds, revision};
use crate::controllers::objects::number;
use crate::object::{get_metadata, seconds};
use crate::store::Key;
use crate::world::Client;

/// Writes the deployment's status and revision, if they are not so already.
pub(super) fn report(client: &mut Client<'_>, key: &Key, deployment: &Value, sets: &Sets) {
    let wanted = number(deployment, "/spec/replicas");
    let (_, unavailable) = bounds(deployment, wanted);
    let updated = sets
        .new
        .as_ref()
        .map_or(0, |(_, set)| number(set, "/status/replicas"));
    let (replicas, available) = (
        sets.sum("/status/replicas"),
        sets.sum("/status/availableReplicas"),
    );
    let enough = available >= wanted - unavailable;
    let done = updated == wanted && replicas == wanted && available >= wanted;
    let least = if enough {
        [
            "True",
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        ]
    } else {
        [
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        ]
    };
    let name = sets.new.as_ref().map_or("", |(key, _)| key.name.as_ref());
    let progress = if done {
        [
            "True",
            "NewReplicaSetAvailable",
            &format!("ReplicaSet {name:?} has successfully progressed."),
        ]
    } else {
        [
            "True",
            "ReplicaSetUpdated",
            &format!("ReplicaSet {name:?} is progressing."),
        ]
    };
    let stored = deployment.get("status").unwrap_or(&Value::Null);
    let conditions = [("Available", least), ("Progressing", progress)]
        .map(|(kind, content)| condition(stored, kind, content, client.now));
    let status = json!({
        "observedGeneration": get_metadata(deployment, "generation"), "replicas": replicas,
        "updatedReplicas": updated, "readyReplicas": sets.sum("/status/readyReplicas"),
        "availableReplicas": available, "unavailableReplicas": (wanted - available).max(0),
        "conditions": conditions,
    });
    let zero = Value::from(0);
    let changed = status.as_object().is_some_and(|members| {
        members
            .iter()
            .any(|(name, value)| stored.get(name).unwrap_or(&zero) != value)
    });
    let path = format!(
        "/apis/apps/v1/namespaces/{}/deployments/{}",
        key.namespace, key.name
    );
    let newest = sets
        .new
        .as_ref()
        .map(|(_, set)| revision(set))
        .filter(|newest| *newest > revision(deployment));
    if let Some(newest) = newest {
        client.merge(
            &path,
            &json!({"metadata": {"annotations": {REVISION: newest.to_string()}}}),
        );
    }
    if changed {
        client.merge(&format!("{path}/status"), &json!({"status": status}));
    }
}

/// A condition; one with the same texts as before keeps its times.
fn condition(stored: &Value, kind: &str, [status, reason, message]: [&str; 3], now: Timestamp) -> Value {
    let list = stored.get("conditions").and_then(Value::as_array);
    let found = list
        .into_iter()
        .flatten()
        .find(|one| one.get("type") == Some(&kind.into()));
    let text = |name: &str| found.and_then(|one| one.get(name)?.as_str()).unwrap_or_default();
    if (text("status"), text("reason"), text("message")) == (status, reason, message) {
        return found.cloned().unwrap_or_default();
    }
    let now = seconds(now);
    let since = if text("status") == status {
        text("lastTransitionTime")
    } else {
        &now
    };
    json!({"type": kind, "status": status, "reason": reason, "message": message,
        "lastUpdateTime": now, "lastTransitionTime": since})
}
