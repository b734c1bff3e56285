//! What a stateful set reports of itself.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::revisions::Revisions;
use super::set::{Set, is_leaving, revision};
use crate::controllers::objects::ready_since;
use crate::object::get_metadata;
use crate::world::Client;

/// Writes the set's status if it is not so already. Returns when waiting alone will change it.
pub(super) fn report(client: &mut Client<'_>, set: &Set<'_>, revisions: &Revisions) -> Option<Timestamp> {
    let pods = || set.pods.values();
    let of = |name: &str| {
        pods()
            .filter(|pod| !is_leaving(pod) && revision(pod) == name)
            .count() as i64
    };
    let times: Vec<Timestamp> = pods().filter_map(|pod| set.available_at(pod)).collect();
    let ready = pods().filter(|pod| ready_since(pod).is_some()).count();
    let (replicas, ready, updated) = (pods().count() as i64, ready as i64, of(&revisions.update));
    let done = set.is_rolling() && [replicas, ready, updated] == [set.replicas(); 3];
    let current = if done {
        &revisions.update
    } else {
        &revisions.current
    };
    let available = times.iter().filter(|time| **time <= client.now).count();
    let status = json!({
        "observedGeneration": get_metadata(set.object, "generation"), "replicas": replicas, "readyReplicas": ready,
        "availableReplicas": available, "currentReplicas": of(current), "updatedReplicas": updated,
        "currentRevision": current, "updateRevision": revisions.update, "collisionCount": 0,
    });
    let stored = set.object.get("status").unwrap_or(&Value::Null);
    let changed = status.as_object().is_some_and(|members| {
        members
            .iter()
            .any(|(name, value)| stored.get(name).unwrap_or(&0.into()) != value)
    });
    if changed {
        let (namespace, name) = (&set.key.namespace, &set.key.name);
        let path = format!("/apis/apps/v1/namespaces/{namespace}/statefulsets/{name}/status");
        client.merge(&path, &json!({"status": status}));
    }
    times.into_iter().filter(|time| *time > client.now).min()
}
