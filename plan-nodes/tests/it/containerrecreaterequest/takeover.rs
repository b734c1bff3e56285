//! Requests as OpenKruise stores them. None is among the objects that were recorded: these are written from the
//! protocol.

use serde_json::{Value, json};

use super::bench::{ACTIVE, Bench, FINALIZER, POD};

const ENTRY: &str = r#"{"name":"app","ready":true,"restartCount":1,"containerID":"containerd://app-1"}"#;
const ACQUIRED: &str = "2026-01-01T00:00:02Z";

/// A request with a grace period whose container runs again, in this version.
fn stored(version: &str) -> Value {
    let mut request = json!({
        "apiVersion": format!("apps.kruise.io/{version}"), "kind": "ContainerRecreateRequest",
        "metadata": {"name": "restart", "namespace": "shop", "creationTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": [FINALIZER], "labels": {(ACTIVE): "true", "crr.apps.kruise.io/pod-uid": "uid-cart-0",
                "crr.apps.kruise.io/node-name": "n1"}},
        "spec": {"podName": POD, "activeDeadlineSeconds": 300, "ttlSecondsAfterFinished": 1800,
            "containers": [{"name": "app", "statusContext": {"containerID": "containerd://app-0", "restartCount": 0}}],
            "strategy": {"failurePolicy": "Fail", "terminationGracePeriodSeconds": 30, "unreadyGracePeriodSeconds": 5}},
        "status": {"phase": "Recreating", "containerRecreateStates": [
            {"name": "app", "phase": "Recreating", "isKilled": true}]},
    });
    let entries = format!("[{ENTRY}]");
    if version == "v1alpha1" {
        request["metadata"]["annotations"] = json!({"crr.apps.kruise.io/sync-container-statuses": entries,
            "crr.apps.kruise.io/unready-acquired": ACQUIRED});
    } else {
        let entries: Value = serde_json::from_str(&entries).unwrap();
        request["status"]["containerStatusSnapshot"] = entries;
        request["status"]["conditions"] = json!([{"type": "PreRecreateGrace", "status": "True",
            "reason": "PreRecreateGrace", "lastTransitionTime": ACQUIRED,
            "message": "Pod has been forced to not-ready for unreadyGracePeriodSeconds drain"}]);
    }
    request
}

/// The pod of such a request.
fn taken_over(version: &str) -> Bench {
    let mut bench = Bench::new();
    bench.pass(8);
    bench.restart("app");
    bench.ready("app");
    bench.touch(|pod| {
        let conditions = pod["status"]["conditions"].as_array_mut().unwrap();
        conditions.retain(|one| one["type"] != "KruisePodReady");
        let message = r#"[{"userAgent":"ContainerRecreateRequest","key":"shop/restart"}]"#;
        conditions.push(json!({"type": "KruisePodReady", "status": "False", "message": message}));
    });
    bench.store(stored(version));
    bench
}

#[test]
fn a_request_that_upstream_half_finished_goes_on_without_a_needless_write() {
    for version in ["v1alpha1", "v1beta1"] {
        let mut bench = taken_over(version);
        bench.settle();
        assert!(bench.written.is_empty(), "{version}: {:?}", bench.written);
        assert_eq!(bench.again("restart"), Some(292), "only its deadline");
        bench.complete("restart");
        bench.settle();
        let expected = [&*format!("mark-ready {POD}"), "release-request restart"];
        assert_eq!(bench.written, expected, "{version}");
        assert!(bench.keys().is_empty());
    }
}

#[test]
fn requests_that_upstream_finished_are_left_alone_until_their_time_to_live_is_over() {
    for version in ["v1alpha1", "v1beta1"] {
        let mut bench = Bench::new();
        let mut request = stored(version);
        request["metadata"]["finalizers"] = Value::Null;
        request["metadata"]["labels"][ACTIVE] = Value::Null;
        let labels = request["metadata"]["labels"].as_object_mut().unwrap();
        labels.remove(ACTIVE);
        request["status"]["phase"] = json!("Completed");
        request["status"]["completionTime"] = json!("2026-01-01T00:00:00Z");
        bench.store(request);
        bench.settle();
        assert!(bench.written.is_empty(), "{version}");
        assert_eq!(bench.again("restart"), Some(1800));
    }
}
