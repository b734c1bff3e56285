//! Secrets that are planted wherever objects may have some.

use kruise_api::names::{CONVERSION_DATA, LAST_APPLIED};

use super::*;

/// No word of it may be left over.
const SECRET: &str = "hunter2";

#[track_caller]
fn assert_clean(kept: &Value) {
    let text = kept.to_string();
    assert!(!text.contains(SECRET), "{text}");
}

/// A container with a secret in each place.
fn container() -> Value {
    json!({
        "name": "main", "image": "web:1", "command": ["sh", "-c", SECRET], "args": [SECRET],
        "env": [{"name": "PASSWORD", "value": SECRET}, {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
        "livenessProbe": {"httpGet": {"path": format!("/?token={SECRET}"), "port": 80,
            "httpHeaders": [{"name": "Authorization", "value": SECRET}]}},
        "readinessProbe": {"exec": {"command": [SECRET]}},
        "lifecycle": {"preStop": {"exec": {"command": [SECRET]}}},
        "fieldOfTomorrow": SECRET,
    })
}

fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}, "annotations": {"note": SECRET, "name": SECRET}},
        "spec": {
            "initContainers": [container()], "containers": [container()],
            "volumes": [
                {"name": "v", "csi": {"driver": "d", "volumeAttributes": {"name": SECRET}}},
                {"name": "f", "flexVolume": {"options": {"name": SECRET}}},
                {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"audience": SECRET, "path": "p"}}]}},
            ],
        },
    })
}

#[test]
fn nothing_of_a_secret_is_left_of_any_kind() {
    let applied = json!({"spec": {"template": template()}}).to_string();
    let metadata = json!({
        "name": "web", "namespace": "shop",
        "annotations": {LAST_APPLIED: applied, CONVERSION_DATA: applied, INPLACE_STATE: json!({
            "revision": "web-1", "nextContainerRefMetadata": {"main": {"annotations": {"name": SECRET}}},
        }).to_string()},
        "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {format!("v:\"{SECRET}\""): {}}}}],
    });
    for (kind, spec) in [
        ("CloneSet", json!({"template": template()})),
        (
            "SidecarSet",
            json!({
                "containers": [container()], "initContainers": [container()],
                "patchPodMetadata": [{"annotations": {"name": SECRET}, "patchPolicy": "Overwrite"}],
                "volumes": [{"name": "v", "csi": {"volumeAttributes": {"name": SECRET}}}],
            }),
        ),
        (
            "ResourceDistribution",
            json!({"resource": {
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "annotations": {"name": SECRET}},
                "type": SECRET, "data": {"name": SECRET}, "stringData": {"name": SECRET},
            }}),
        ),
        (
            "ResourceDistribution",
            json!({"resource": {"kind": "ConfigMap", "data": {"name": SECRET}}}),
        ),
        (
            "UnitedDeployment",
            json!({
                "template": {"cloneSetTemplate": {"spec": {"template": template()}}},
                "topology": {"subsets": [{"name": "a", "patch": {"spec": {"containers": [container()]}}}]},
            }),
        ),
        (
            "WorkloadSpread",
            json!({"subsets": [{"name": "a", "patch": {"metadata": {"annotations": {"name": SECRET}}}}]}),
        ),
        (
            "AdvancedCronJob",
            json!({"template": {"jobTemplate": {"spec": {"template": template()}}}}),
        ),
        (
            "EphemeralJob",
            json!({"template": {"ephemeralContainers": [container()]}}),
        ),
        (
            "ContainerRecreateRequest",
            json!({"containers": [{"name": "main", "preStop": {"exec": {"command": [SECRET]}}}]}),
        ),
        (
            "PodProbeMarker",
            json!({"probes": [{"name": "p", "probe": {"exec": {"command": [SECRET]}}}]}),
        ),
    ] {
        assert_clean(&object(
            &json!({"kind": kind, "metadata": metadata, "spec": spec}),
        ));
    }
    for other in [
        json!({"kind": "ControllerRevision", "metadata": metadata, "data": {"spec": {"template": template()}}}),
        json!({"kind": "Secret", "data": {"name": SECRET}, "stringData": {"name": SECRET}}),
        json!({"kind": "ConfigMap", "data": {"name": SECRET}, "binaryData": {"name": SECRET}}),
        json!({"kind": "NodePodProbe", "status": {"podProbeStatuses": [{"name": "web-1", "probeStates":
            [{"name": "p", "state": "Failed", "message": SECRET}]}]}}),
    ] {
        assert_clean(&object(&other));
    }
}

#[test]
fn of_a_pod_its_metadata_status_and_images_are_left() {
    let ended = json!({"terminated": {"reason": "Error", "exitCode": 1, "message": SECRET}});
    let kept = pod(&json!({
        "metadata": {"name": "web-1", "namespace": "shop", "labels": {"app": "web"}, "annotations": {"note": SECRET}},
        "spec": {"nodeName": "n1", "containers": [container()]},
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": "containers with unready status: [main]"},
                {"type": "InPlaceUpdateReady", "status": "False", "message": SECRET},
                {"type": "example.com/ready", "status": "False", "message": SECRET},
            ],
            "containerStatuses": [
                {"name": "main", "restartCount": 2, "state": ended, "lastState": ended},
                {"name": "other", "state": {"waiting": {"reason": "RunContainerError", "message": SECRET}}},
                {"name": "third", "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}},
            ],
        },
    }));
    assert_clean(&kept);
    let text = kept.to_string();
    for left in [
        "web-1",
        "n1",
        "web:1",
        "containers with unready status",
        "RunContainerError",
        "not found",
        "\"exitCode\":1",
    ] {
        assert!(text.contains(left), "{left}: {text}");
    }
}

#[test]
fn what_support_needs_of_a_workload_is_left() {
    let set = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet",
        "metadata": {"name": "web", "generation": 3, "annotations": {"note": SECRET}},
        "spec": {
            "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
            "updateStrategy": {"type": "InPlaceIfPossible", "partition": "20%", "maxUnavailable": 1},
            "template": template(),
        },
        "status": {"updateRevision": "web-1", "conditions": [{"type": "FailedScale", "status": "True", "message": "quota"}]},
    });
    let kept = object(&set);
    assert_clean(&kept);
    for pointer in [
        "/apiVersion",
        "/metadata/name",
        "/metadata/generation",
        "/spec/replicas",
        "/spec/selector/matchLabels/app",
        "/spec/updateStrategy",
        "/status",
        "/spec/template/spec/containers/0/image",
        "/spec/template/spec/containers/0/env/1/valueFrom/secretKeyRef/name",
    ] {
        assert_eq!(kept.pointer(pointer), set.pointer(pointer), "{pointer}");
    }
    assert_eq!(
        kept.pointer("/spec/template/spec/containers/0/env/0"),
        Some(&json!({"name": "PASSWORD", "value": REDACTED}))
    );
    assert_eq!(kept.pointer("/metadata/annotations/note"), Some(&json!(REDACTED)));
}

#[test]
fn messages_of_events_are_left_unless_they_quote_a_program() {
    let of = |reason: &str, component: &str| {
        event(
            &json!({"reason": reason, "message": SECRET, "source": {"component": component},
            "involvedObject": {"kind": "Pod", "name": "web-1"}}),
        )
    };
    for (reason, component, is_left) in [
        ("Unhealthy", "kubelet", false),
        ("Failed", "kubelet", false),
        ("Pulled", "kubelet", true),
        ("FailedMount", "kubelet", false),
        ("FailedScheduling", "default-scheduler", true),
        ("FailedCreate", "cloneset-controller", true),
        ("FailedCreate", "controller-of-others", false),
        ("Pulled", "", false),
    ] {
        assert_eq!(of(reason, component)["message"] == SECRET, is_left, "{reason}");
    }
}

#[test]
fn of_a_message_the_first_line_is_left_up_to_a_length() {
    let of = |message: &str| {
        let status = json!({"conditions": [{"type": "FailedUpdate", "reason": "LastAttemptFailed", "message": message}]});
        let kept = object(&json!({"kind": "CloneSet", "status": status}));
        kept["status"]["conditions"][0]["message"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(of(&format!("may not change\n- {SECRET}")), "may not change");
    assert_eq!(of(""), "");
    assert_eq!(of(&"ü".repeat(300)), "ü".repeat(256));
    assert_eq!(
        of(&format!("x{}", "ü".repeat(300))),
        format!("x{}", "ü".repeat(255))
    );
}
