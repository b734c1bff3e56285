use kruise_api::lifecycle::LifecycleHook;
use serde_json::json;

use super::*;

const NOW: &str = "2026-01-01T00:10:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// A pod that has a node and is not ready, with these further members of its status.
fn pod(status: Value) -> Value {
    let mut pod = json!({
        "metadata": {"name": "web-a", "namespace": "shop", "uid": "u", "labels": {}, "annotations": {}},
        "spec": {"nodeName": "n"},
        "status": {"phase": "Pending", "conditions": [
            {"type": "Ready", "status": "False", "reason": "ContainersNotReady",
             "message": "containers with unready status: [web]"}]},
    });
    json_patch(&mut pod["status"], status);
    pod
}

fn json_patch(into: &mut Value, with: Value) {
    let Value::Object(with) = with else { return };
    for (name, value) in with {
        into[name] = value;
    }
}

fn of(pod: &Value) -> String {
    facts(pod, None, now()).join("; ")
}

#[test]
fn a_container_that_waits_or_ended_is_named_with_the_reason_and_the_message_of_the_kubelet() {
    let back_off = json!({"name": "web", "state": {"waiting": {"reason": "ImagePullBackOff",
        "message": "Back-off pulling image \"nginx:nope\":\n  not found"}}});
    let crashed = json!({"name": "web", "restartCount": 7, "state": {"waiting": {"reason": "CrashLoopBackOff",
        "message": "back-off 5m0s restarting failed container"}},
        "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}});
    let ended = json!({"name": "web", "state": {"terminated": {"reason": "Error", "exitCode": 1, "message": "no such flag\n"}}});
    let unready = json!({"name": "web", "ready": false, "started": true, "state": {"running": {}}});
    let starting = json!({"name": "web", "ready": false, "started": false, "state": {"running": {}}});
    for (status, expected) in [
        (
            back_off,
            "container web waits: ImagePullBackOff: Back-off pulling image \"nginx:nope\": not found",
        ),
        (
            crashed,
            "container web waits: CrashLoopBackOff: back-off 5m0s restarting failed container (restarts: 7; it ended last \
             with OOMKilled (exit code 137))",
        ),
        (
            ended,
            "container web has ended: Error (exit code 1): no such flag",
        ),
        (unready, "container web runs, and is not ready"),
        (
            starting,
            "container web runs, and its startup probe has not succeeded",
        ),
    ] {
        assert_eq!(of(&pod(json!({"containerStatuses": [status]}))), expected);
    }
}

#[test]
fn containers_that_wait_for_an_init_container_leave_the_word_to_it() {
    let status = json!({
        "initContainerStatuses": [
            {"name": "first", "state": {"terminated": {"reason": "Completed", "exitCode": 0}}},
            {"name": "second", "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
        ],
        "containerStatuses": [{"name": "web", "state": {"waiting": {"reason": "PodInitializing"}}}],
    });
    assert_eq!(of(&pod(status)), "init container second waits: CrashLoopBackOff");
}

#[test]
fn a_pod_without_a_node_is_explained_in_the_words_of_the_scheduler() {
    let mut pending = pod(
        json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/3 nodes are available: 3 Insufficient cpu."}]}),
    );
    pending["spec"] = json!({});
    assert_eq!(
        of(&pending),
        "is not scheduled: Unschedulable: 0/3 nodes are available: 3 Insufficient cpu."
    );
    pending["status"] = json!({});
    pending["spec"] = json!({"schedulerName": "mine"});
    assert_eq!(
        of(&pending),
        "is not scheduled: the scheduler mine has not reported anything"
    );
}

#[test]
fn readiness_gates_and_conditions_are_named_where_all_containers_are_ready() {
    let status = json!({
        "containerStatuses": [{"name": "web", "ready": true, "state": {"running": {}}}],
        "conditions": [
            {"type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady"},
            {"type": "KruisePodReady", "status": "False", "message": "[{\"userAgent\":\"Lifecycle\"}]"},
        ],
    });
    let mut gated = pod(status);
    gated["spec"]["readinessGates"] =
        json!([{"conditionType": "KruisePodReady"}, {"conditionType": "load/ready"}]);
    assert_eq!(
        of(&gated),
        "its readiness gate KruisePodReady is False: [{\"userAgent\":\"Lifecycle\"}]; its readiness gate load/ready has no \
         condition yet"
    );
    assert_eq!(
        of(&pod(json!({}))),
        "is not ready: ContainersNotReady: containers with unready status: [web]"
    );
    let evicted = pod(json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}));
    assert_eq!(of(&evicted), "has ended, Failed: Evicted: low on memory");
}

#[test]
fn a_hook_that_holds_is_named_with_its_label_or_finalizer_and_the_time() {
    let hook = LifecycleHook {
        labels_handler: [("example.com/hold".to_owned(), "true".to_owned())].into(),
        finalizers_handler: vec!["example.com/drain".into()],
        ..LifecycleHook::default()
    };
    let lifecycle = Lifecycle {
        pre_delete: Some(hook.clone()),
        in_place_update: Some(hook.clone()),
        pre_normal: Some(hook),
    };
    let in_state = |state: &str, label: bool, finalizer: bool| {
        let mut pod = json!({
            "metadata": {"labels": {LIFECYCLE_STATE: state}, "annotations": {LIFECYCLE_TIMESTAMP: "2026-01-01T00:05:00Z"}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        if label {
            pod["metadata"]["labels"]["example.com/hold"] = json!("true");
        }
        if finalizer {
            pod["metadata"]["finalizers"] = json!(["example.com/drain"]);
        }
        facts(&pod, Some(&lifecycle), now()).join("; ")
    };
    let since = "holds it since 2026-01-01T00:05:00Z (5 min), until somebody";
    let (label, finalizer) = ("label example.com/hold=true", "finalizer example.com/drain");
    for (state, has_label, has_finalizer, expected) in [
        (
            "PreparingDelete",
            true,
            false,
            format!("its preDelete hook {since} removes {label}"),
        ),
        (
            "PreparingUpdate",
            false,
            true,
            format!("its inPlaceUpdate hook {since} removes {finalizer}"),
        ),
        (
            "PreparingDelete",
            true,
            true,
            format!("its preDelete hook {since} removes {label} and {finalizer}"),
        ),
        (
            "Updated",
            true,
            false,
            format!("its inPlaceUpdate hook {since} adds {finalizer}"),
        ),
        (
            "PreparingNormal",
            false,
            false,
            format!("its preNormal hook {since} adds {label} and {finalizer}"),
        ),
        ("PreparingDelete", false, false, String::new()),
        ("Normal", true, true, String::new()),
    ] {
        assert_eq!(in_state(state, has_label, has_finalizer), expected, "{state}");
    }
}

#[test]
fn a_pod_that_is_being_deleted_says_what_keeps_it() {
    let leaving = |finalizers: Value, gone_by: &str| {
        let mut pod = pod(json!({"conditions": [{"type": "Ready", "status": "True"}]}));
        pod["metadata"]["deletionTimestamp"] = json!(gone_by);
        pod["metadata"]["finalizers"] = finalizers;
        of(&pod)
    };
    let later = "2026-01-01T00:11:00Z";
    assert_eq!(
        leaving(json!(["a.b/c"]), later),
        "is being deleted: waits for its finalizers a.b/c"
    );
    assert_eq!(
        leaving(json!(null), later),
        "is being deleted: its grace period runs"
    );
    assert_eq!(
        leaving(json!(null), "2026-01-01T00:08:00Z"),
        "is being deleted, 120 s longer than its grace period: its node has not confirmed its end"
    );
}

#[test]
fn the_last_warning_about_a_pod_is_added_unless_the_status_has_its_message() {
    let event = |message: &str, when: &str| {
        json!({"type": "Warning", "reason": "Unhealthy", "message": message, "lastTimestamp": when,
            "source": {"component": "kubelet"}, "involvedObject": {"uid": "u"}})
    };
    let events = [
        event("Readiness probe failed: 503", "2026-01-01T00:09:00Z"),
        event("older", "2026-01-01T00:08:00Z"),
    ];
    let unready =
        pod(json!({"containerStatuses": [{"name": "web", "ready": false, "state": {"running": {}}}]}));
    let section = |warnings: &Warnings, pod: &Value| {
        Facts::of([("web-a".to_owned(), pod)].into_iter(), None, warnings, now()).section(|_| true)
    };
    assert_eq!(
        section(&Warnings::of(&events), &unready),
        "\nNot in service, or held:\n  pods/web-a: container web runs, and is not ready; last warning, from kubelet at \
         2026-01-01T00:09:00Z: Unhealthy: Readiness probe failed: 503\n"
    );
    let known = Warnings::of(&[event("containers with unready status: [web]", NOW)]);
    assert!(!section(&known, &pod(json!({}))).contains("last warning"));
}

#[test]
fn pods_in_service_are_not_mentioned_and_many_are_counted() {
    let ready = pod(json!({"conditions": [{"type": "Ready", "status": "True"}]}));
    assert_eq!(of(&ready), "");
    let broken = pod(json!({}));
    let pods = (0..MOST + 3).map(|index| (format!("web-{index:02}"), &broken));
    let facts = Facts::of(pods, None, &Warnings::default(), now());
    assert!(
        facts
            .section(|_| true)
            .ends_with("  and 3 more pods; name one to see what it reports\n")
    );
    assert_eq!(facts.section(|name| name == "web-22").lines().count(), 3);
    assert_eq!(facts.section(|_| false), "");
}

#[test]
fn what_pods_report_can_be_left_out_and_the_rest_stays() {
    let ended = json!({"name": "web", "state": {"terminated": {"reason": "Error", "exitCode": 1, "message": "hunter2\nhunter2"}}});
    let pod = pod(json!({"containerStatuses": [ended]}));
    let facts = Facts::of(
        [("web-1".to_owned(), &pod)].into_iter(),
        None,
        &Warnings::default(),
        Timestamp::UNIX_EPOCH,
    );
    let section = facts.section(|_| true);
    assert!(section.contains("hunter2"), "{section}");
    let text = format!("clonesets/web\n{section}\n  wants 3 pods\n\nPods:\n  pods/web-1: held\n");
    let left = without_reports(&text);
    assert!(!left.contains("hunter2"), "{left}");
    assert!(
        left.ends_with("\n  wants 3 pods\n\nPods:\n  pods/web-1: held\n"),
        "{left}"
    );
    assert_eq!(without_reports("clonesets/web\n"), "clonesets/web\n");
}
