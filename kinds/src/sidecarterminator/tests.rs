use std::sync::Arc;

use kruise_views::PodView;
use kube_cache::{Delta, ObjectKey};
use serde_json::{Value, json};

use super::{CachedRequest, REQUESTS_BY_OWNER, of_pod, of_request};

/// Pod `shop/report` with a sidecar; its main container has ended, or has not.
#[allow(clippy::unnecessary_wraps, reason = "as a delta holds it")]
fn pod(has_ended: bool) -> Option<Arc<PodView>> {
    let state = if has_ended {
        json!({"terminated": {"exitCode": 0}})
    } else {
        json!({"running": {}})
    };
    let pod = json!({
        "metadata": {"name": "report", "namespace": "shop", "uid": "p1"},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main"},
            {"name": "log", "env": [{"name": "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", "value": "true"}]}]},
        "status": {"phase": "Running", "containerStatuses": [
            {"name": "main", "state": state}, {"name": "log", "state": {"running": {}}}]},
    });
    Some(serde_json::from_str(&pod.to_string()).unwrap())
}

fn request(owners: &Value) -> Arc<CachedRequest> {
    let request = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest",
        "metadata": {"name": "sidecar-termination-p1", "namespace": "shop", "ownerReferences": owners},
        "spec": {"podName": "report", "containers": [{"name": "log"}]},
    });
    serde_json::from_str(&request.to_string()).unwrap()
}

#[test]
fn pods_are_keys_while_their_main_containers_have_ended_and_once_after() {
    let key = Some(ObjectKey::new("shop", "report"));
    let enqueued = |old, new| of_pod(&Delta { old, new });
    assert_eq!(enqueued(None, pod(false)), None);
    assert_eq!(enqueued(pod(false), pod(true)), key);
    assert_eq!(enqueued(pod(true), None), key, "its memory is cleared");
    assert_eq!(enqueued(pod(false), pod(false)), None);
}

#[test]
fn requests_lead_to_the_pod_that_controls_them_and_to_no_other() {
    let owner = |kind: &str, controller: bool| json!([{"apiVersion": "v1", "kind": kind, "name": "report", "uid": "p1", "controller": controller}]);
    let key = |request: Arc<CachedRequest>| {
        let found = REQUESTS_BY_OWNER.keys_of(&request).len();
        let key = of_request(&Delta {
            old: None,
            new: Some(request),
        });
        (key, found)
    };
    let enqueued = (Some(ObjectKey::new("shop", "report")), 1);
    assert_eq!(key(request(&owner("Pod", true))), enqueued);
    assert_eq!(key(request(&owner("Pod", false))), (None, 0));
    assert_eq!(key(request(&owner("CloneSet", true))), (None, 0));
    assert_eq!(key(request(&Value::Null)), (None, 0));
}
