//! ContainerRecreateRequests for pods whose node has no agent: the tests play the agent, and the kubelet that
//! starts a container anew.

use jiff::Timestamp;
use kruise_e2e::wait::{self, Patience};
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, explained, scenario, text};

const REQUESTS: &str = "containerrecreaterequests";
const FINALIZER: &str = "crr.apps.kruise.io/unready-acquired";

/// A pod with the readiness gate whose container runs and is ready.
pub(crate) fn pod(scenario: &Scenario, name: &str) -> Value {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "cart"}},
        "spec": {"readinessGates": [{"conditionType": "KruisePodReady"}],
            "containers": [{"name": "app", "image": "nginx:1"}]},
    });
    scenario.kubectl.create(&pod).unwrap();
    let mut running = Value::Null;
    wait::until_true("the pod is in service", LIMIT, || {
        running = scenario.kubectl.get("pods", name)?;
        let status = &running["status"]["containerStatuses"][0];
        Ok(status["ready"] == true && status["containerID"].is_string() && state(&running) == "True")
    })
    .unwrap();
    running
}

/// Status of the condition that takes a pod out of service.
fn state(pod: &Value) -> &str {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let own = conditions.find(|one| one["type"] == "KruisePodReady");
    own.and_then(|one| one["status"].as_str()).unwrap_or_default()
}

/// A request to restart the container of a pod.
pub(crate) fn request(name: &str, pod: &str, spec: &Value) -> Value {
    let mut whole = json!({"podName": pod, "containers": [{"name": "app"}]});
    let members = whole.as_object_mut().unwrap();
    members.extend(spec.as_object().unwrap().clone());
    json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest", "metadata": {"name": name},
        "spec": whole})
}

pub(crate) fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The agent reports.
pub(crate) fn report(scenario: &Scenario, name: &str, status: &Value) {
    let patch = json!({ "status": status });
    scenario.kubectl.patch_status(REQUESTS, name, &patch).unwrap();
}

/// The agent has dealt with every container.
pub(crate) fn complete(scenario: &Scenario, name: &str) {
    report(
        scenario,
        name,
        &json!({"phase": "Completed", "completionTime": now()}),
    );
}

/// The kubelet reports that the container runs anew.
fn restart(scenario: &Scenario, pod: &str) {
    let mut status = scenario.kubectl.get("pods", pod).unwrap()["status"]["containerStatuses"][0].clone();
    status["containerID"] = json!("containerd://anew");
    status["restartCount"] = json!(status["restartCount"].as_i64().unwrap() + 1);
    status["state"] = json!({"running": {"startedAt": now()}});
    let patch = json!({"status": {"containerStatuses": [status]}});
    scenario.kubectl.patch_status("pod", pod, &patch).unwrap();
}

fn until(
    scenario: &Scenario,
    name: &str,
    what: &str,
    limit: Patience,
    mut holds: impl FnMut(&Value) -> bool,
) -> Value {
    let mut request = Value::Null;
    wait::until_true(what, limit, || {
        request = scenario.kubectl.get(REQUESTS, name)?;
        Ok(holds(&request))
    })
    .unwrap_or_else(|error| panic!("{error}: {request}"));
    request
}

fn until_ended(scenario: &Scenario, name: &str, message: &str) {
    let ended = until(scenario, name, "the request ends", LIMIT, |request| {
        request["status"]["phase"] == "Completed"
            && request["metadata"]["labels"]
                .get("crr.apps.kruise.io/active")
                .is_none()
    });
    assert_eq!(ended["status"]["message"], message, "{ended}");
    assert!(ended["status"]["completionTime"].is_string());
}

/// When the grace period of a request began, in a version.
fn begun(request: &Value) -> &Value {
    let conditions = request["status"]["conditions"].as_array();
    let own = conditions
        .into_iter()
        .flatten()
        .find(|one| one["type"] == "PreRecreateGrace");
    own.map_or(&Value::Null, |one| &one["lastTransitionTime"])
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_pod_is_out_of_service_while_its_container_is_restarted_and_comes_back_after_the_end() {
    let scenario = scenario("recreate");
    let kubectl = &scenario.kubectl;
    let pod = pod(&scenario, "cart-0");
    let spec = json!({"strategy": {"unreadyGracePeriodSeconds": 2}, "ttlSecondsAfterFinished": 3});
    kubectl.create(&request("restart", "cart-0", &spec)).unwrap();
    let why = explained(&scenario, &["crr/restart", "-n", "recreate"]);
    let node = text(&pod, "/spec/nodeName");
    assert!(
        why.contains(&format!("waits for the agent of node {node} to report")),
        "{why}"
    );
    report(&scenario, "restart", &json!({"phase": "Recreating"}));
    let held = until(
        &scenario,
        "restart",
        "the grace period begins",
        LIMIT,
        |request| begun(request).is_string(),
    );
    assert_eq!(held["metadata"]["finalizers"], json!([FINALIZER]));
    let older = kubectl
        .get("containerrecreaterequests.v1alpha1.apps.kruise.io", "restart")
        .unwrap();
    assert_eq!(older["metadata"]["annotations"][FINALIZER], *begun(&held));
    let unready = kubectl.get("pods", "cart-0").unwrap();
    let conditions = unready["status"]["conditions"].as_array().unwrap();
    let own = conditions.iter().find(|one| one["type"] == "KruisePodReady");
    // In the order of upstream's fields.
    let message = r#"[{"userAgent":"ContainerRecreateRequest","key":"recreate/restart"}]"#;
    assert_eq!(
        (state(&unready), &own.unwrap()["message"]),
        ("False", &json!(message))
    );

    restart(&scenario, "cart-0");
    let seen = until(
        &scenario,
        "restart",
        "the new container is listed",
        LIMIT,
        |request| request["status"]["containerStatusSnapshot"][0]["containerID"] == "containerd://anew",
    );
    assert_eq!(begun(&seen), begun(&held), "its time does not change");
    let entry = &seen["status"]["containerStatusSnapshot"][0];
    assert_eq!(entry["name"], "app");
    let older = kubectl
        .get("containerrecreaterequests.v1alpha1.apps.kruise.io", "restart")
        .unwrap();
    let entries = text(
        &older,
        "/metadata/annotations/crr.apps.kruise.io~1sync-container-statuses",
    );
    let entries: Value = serde_json::from_str(&entries).unwrap();
    assert_eq!(entries, seen["status"]["containerStatusSnapshot"]);

    complete(&scenario, "restart");
    wait::until_true(
        "the pod is in service again, and the request is gone",
        LIMIT,
        || {
            let pod = kubectl.get("pods", "cart-0")?;
            Ok(state(&pod) == "True" && kubectl.list(REQUESTS, "")?.is_empty())
        },
    )
    .unwrap();
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn requests_end_without_an_agent_at_their_deadline_and_with_their_pod() {
    let scenario = scenario("recreate-ends");
    for name in ["a", "b", "c"] {
        pod(&scenario, name);
        let mut spec = json!({"strategy": {"unreadyGracePeriodSeconds": 2}});
        if name == "b" {
            spec["activeDeadlineSeconds"] = json!(10);
        }
        scenario.kubectl.create(&request(name, name, &spec)).unwrap();
    }
    for name in ["b", "c"] {
        report(&scenario, name, &json!({"phase": "Recreating"}));
        until(&scenario, name, "it holds its pod", LIMIT, |request| {
            request["metadata"]["finalizers"] == json!([FINALIZER])
        });
    }
    scenario
        .kubectl
        .run(&["delete", "pod", "c", "--wait=false"])
        .unwrap();
    until_ended(&scenario, "c", "pod has gone");
    until_ended(
        &scenario,
        "b",
        "recreating has exceeded the activeDeadlineSeconds",
    );
    wait::until_true("the pod is in service again", LIMIT, || {
        Ok(state(&scenario.kubectl.get("pods", "b")?) == "True")
    })
    .unwrap();
    until_ended(&scenario, "a", "daemon has not responded for a long time");
    let rest = scenario.kubectl.list(REQUESTS, "").unwrap();
    assert!(
        rest.len() == 3 && rest.iter().all(|one| one["metadata"]["finalizers"].is_null()),
        "{rest:?}"
    );
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_request_that_is_deleted_half_way_gives_its_pod_back() {
    let scenario = scenario("recreate-deleted");
    pod(&scenario, "cart-0");
    let spec = json!({"strategy": {"unreadyGracePeriodSeconds": 600}});
    scenario
        .kubectl
        .create(&request("restart", "cart-0", &spec))
        .unwrap();
    report(&scenario, "restart", &json!({"phase": "Recreating"}));
    until(
        &scenario,
        "restart",
        "the grace period begins",
        LIMIT,
        |request| begun(request).is_string(),
    );
    scenario.kubectl.run(&["delete", REQUESTS, "restart"]).unwrap();
    wait::until_true("the pod is in service again", LIMIT, || {
        Ok(state(&scenario.kubectl.get("pods", "cart-0")?) == "True")
    })
    .unwrap();
}
