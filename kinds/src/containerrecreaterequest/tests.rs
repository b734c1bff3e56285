use std::sync::Arc;

use kruise_views::PodView;
use kube_cache::Delta;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{CachedRequest, REQUESTS_BY_POD, keys};

fn decode<T: DeserializeOwned>(object: &Value) -> Arc<T> {
    Arc::new(serde_json::from_str(&object.to_string()).unwrap())
}

fn request(change: impl FnOnce(&mut Value)) -> Arc<CachedRequest> {
    let mut request = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest",
        "metadata": {"name": "restart", "namespace": "shop", "labels": {"crr.apps.kruise.io/pod-uid": "p1"}},
        "spec": {"podName": "cart-0", "containers": [{"name": "app"}]},
    });
    change(&mut request);
    decode(&request)
}

#[allow(clippy::unnecessary_wraps, reason = "as a delta holds it")]
fn pod(change: impl FnOnce(&mut Value)) -> Option<Arc<PodView>> {
    let mut pod = json!({
        "metadata": {"name": "cart-0", "namespace": "shop", "uid": "p1", "resourceVersion": "7", "labels": {"app": "cart"}},
        "spec": {"initContainers": [{"name": "proxy", "restartPolicy": "Always"}], "containers": [{"name": "app"}]},
        "status": {
            "containerStatuses": [{"name": "app", "containerID": "containerd://a", "ready": true}],
            "initContainerStatuses": [{"name": "proxy", "containerID": "containerd://b"}],
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "KruisePodReady", "status": "True"}],
        },
    });
    change(&mut pod);
    Some(decode(&pod))
}

/// Uids of the pods whose requests a change enqueues.
fn enqueued(old: Option<Arc<PodView>>, new: Option<Arc<PodView>>) -> Vec<String> {
    let uids = std::cell::RefCell::new(Vec::new());
    let requests = |uid: &str| {
        uids.borrow_mut().push(uid.to_owned());
        vec![request(|_| ())]
    };
    let keys = keys::of_pod(&Delta { old, new }, &requests);
    let uids = uids.into_inner();
    assert_eq!(keys.len(), uids.len());
    uids
}

#[test]
fn changes_of_a_pod_that_no_plan_reads_enqueue_nothing() {
    let unread = |pod: &mut Value| {
        pod["metadata"]["resourceVersion"] = json!("8");
        pod["metadata"]["labels"]["app"] = json!("other");
        pod["status"]["conditions"][0]["status"] = json!("False");
    };
    assert!(enqueued(pod(|_| ()), pod(unread)).is_empty());
}

#[test]
fn containers_readiness_and_the_end_of_a_pod_enqueue_its_requests() {
    let changes: [fn(&mut Value); 4] = [
        |pod| pod["status"]["containerStatuses"][0]["containerID"] = json!("containerd://c"),
        |pod| pod["status"]["initContainerStatuses"][0]["ready"] = json!(true),
        |pod| pod["status"]["conditions"][1]["status"] = json!("False"),
        |pod| pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
    ];
    for change in changes {
        assert_eq!(enqueued(pod(|_| ()), pod(change)), ["p1"]);
    }
    assert_eq!(enqueued(None, pod(|_| ())), ["p1"]);
    assert_eq!(enqueued(pod(|_| ()), None), ["p1"]);
    let successor = pod(|pod| pod["metadata"]["uid"] = json!("p2"));
    assert_eq!(enqueued(pod(|_| ()), successor), ["p2", "p1"]);
}

#[test]
fn requests_are_found_by_their_pod_until_they_have_ended_and_hold_nothing() {
    let keys = |change: fn(&mut Value)| REQUESTS_BY_POD.keys_of(&request(change)).len();
    assert_eq!(keys(|_| ()), 1);
    assert_eq!(keys(|one| one["status"] = json!({"phase": "Recreating"})), 1);
    assert_eq!(keys(|one| one["status"] = json!({"phase": "Completed"})), 0);
    let holding = |one: &mut Value| {
        one["status"] = json!({"phase": "Completed"});
        one["metadata"]["finalizers"] = json!(["crr.apps.kruise.io/unready-acquired"]);
    };
    assert_eq!(keys(holding), 1);
    assert_eq!(keys(|one| one["metadata"]["labels"] = json!({})), 0);
    assert_eq!(keys(|one| one["spec"] = json!("?")), 0, "it cannot be read");
}
