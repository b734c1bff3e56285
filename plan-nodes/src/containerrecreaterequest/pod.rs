//! Whether the pod of a request is still there.

use kruise_plan_kit::{Need, ResourceId};
use kruise_views::PodView;
use serde_json::Value;

use super::snapshot::Snapshot;

/// What is known of the pod.
pub(super) enum Known<'a> {
    /// It is there.
    Here(&'a PodView),
    /// It is being deleted or has been, or another one has its name.
    Gone,
    /// It exists, and the cache is about to have it.
    Late,
    /// The API server has to be asked.
    Asked(Need),
}

/// Finds the pod. A cache may be older than the request: what is not there is read from the API server.
pub(super) fn find<'a>(snapshot: &Snapshot<'a>) -> Known<'a> {
    let uid = snapshot.pod_uid();
    if let Some(pod) = snapshot.own_pod() {
        return if pod.deleting {
            Known::Gone
        } else {
            Known::Here(pod)
        };
    }
    if uid.is_empty() {
        return Known::Gone;
    }
    let request = snapshot.request;
    let need = Need::Live(
        ResourceId::PODS,
        request.metadata.namespace.clone(),
        request.spec.pod_name.clone(),
    );
    match snapshot.memory.read.get(&need) {
        None => Known::Asked(need),
        Some(Some(pod)) if is_here(pod, uid) => Known::Late,
        Some(_) => Known::Gone,
    }
}

fn is_here(pod: &Value, uid: &str) -> bool {
    let metadata = pod.get("metadata").unwrap_or(&Value::Null);
    let text = |name: &str| metadata.get(name).and_then(Value::as_str);
    text("uid") == Some(uid) && text("deletionTimestamp").is_none()
}
