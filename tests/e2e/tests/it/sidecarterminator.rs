//! Sidecars that end with their job, on nodes without agents: the tests play the kubelet, which reports what has
//! ended, and the agent.

use kruise_e2e::audit::MANAGER;
use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::wait;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, scenario_gated, text};
use crate::containerrecreaterequest::{complete, now};
use crate::stored::Stored;

/// The feature gate.
pub(crate) const GATE: &str = "--feature-gates=SidecarTerminator=true";
pub(crate) const WHEN: &str = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT";
pub(crate) const IGNORE: &str = "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE";
const REQUESTS: &str = "containerrecreaterequests";

fn name_of_request(pod: &Value, suffix: &str) -> String {
    format!("sidecar-termination-{}{suffix}", text(pod, "/metadata/uid"))
}

/// The request for a pod whose name ends like this.
pub(crate) fn request_of(kubectl: &Kubectl, pod: &Value, suffix: &str) -> anyhow::Result<Value> {
    kubectl.get(REQUESTS, &name_of_request(pod, suffix))
}

/// Waits for the condition of a pod that was ended.
pub(crate) fn until_condition(kubectl: &Kubectl, pod: &str) {
    wait::until_true("the pod has the condition", LIMIT, || {
        let pod = kubectl.get("pods", pod)?;
        let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        let own = conditions.find(|one| one["type"] == "SidecarTerminated");
        Ok(own.is_some_and(|own| {
            own["status"] == "True" && own["message"] == "Terminated by Sidecar Terminator"
        }))
    })
    .unwrap();
}

/// Pod `report` that never restarts: `main`, `log` whose exit code counts, `proxy` whose does not. All run, on a
/// node without a kubelet, which would report them as running again. The node lasts as long as what is returned
/// with the pod.
fn pod(scenario: &Scenario) -> (Value, Stored) {
    let set = |name: &str| json!({"name": name, "value": "true"});
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "report"},
        "spec": {"restartPolicy": "Never", "nodeName": "a", "containers": [
            {"name": "main", "image": "nginx:1"},
            {"name": "log", "image": "nginx:1", "env": [set(WHEN)]},
            {"name": "proxy", "image": "nginx:1", "env": [set(WHEN), set(IGNORE)]},
        ]},
    });
    let mut stored = Stored::of(&scenario.kubectl, "main", "rest");
    stored.place(&mut pod);
    let created = scenario.kubectl.create(&pod).unwrap();
    let containers = ["main", "log", "proxy"].map(|name| {
        json!({
            "name": name, "image": "nginx:1", "imageID": "", "containerID": format!("containerd://{name}"),
            "ready": true, "started": true, "restartCount": 0, "state": {"running": {"startedAt": now()}},
        })
    });
    let status = json!({"phase": "Running", "containerStatuses": containers});
    stored.put_status("pods", &created, &status);
    (created, stored)
}

/// The kubelet reports a container as ended.
fn end(scenario: &Scenario, container: &str, code: i32) {
    let pod = scenario.kubectl.get("pods", "report").unwrap();
    let mut statuses = pod["status"]["containerStatuses"].clone();
    for status in statuses.as_array_mut().unwrap() {
        if status["name"] == container {
            let id = status["containerID"].clone();
            let ended = json!({"exitCode": code, "startedAt": now(), "finishedAt": now(), "containerID": id});
            status["state"] = json!({ "terminated": ended });
            status["ready"] = json!(false);
        }
    }
    let patch = json!({"status": {"containerStatuses": statuses}});
    scenario.kubectl.patch_status("pod", "report", &patch).unwrap();
}

/// Waits for the request of this suffix; returns the containers that it is for.
fn until_requested(scenario: &Scenario, pod: &Value, suffix: &str) -> Value {
    let request = wait::until("the sidecars are requested to stop", LIMIT, || {
        Ok(request_of(&scenario.kubectl, pod, suffix).ok())
    })
    .unwrap();
    assert_eq!(
        request["metadata"]["ownerReferences"][0]["uid"],
        pod["metadata"]["uid"]
    );
    assert_eq!(request["spec"]["strategy"]["forceRecreate"], true);
    let names = request["spec"]["containers"].as_array().unwrap();
    names.iter().map(|one| one["name"].clone()).collect()
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn sidecars_are_requested_to_stop_in_turn_once_the_main_container_has_ended_and_the_pod_ends() {
    let scenario = scenario_gated("terminator");
    let kubectl = &scenario.kubectl;
    let (pod, _node) = pod(&scenario);
    assert!(kubectl.list(REQUESTS, "").unwrap().is_empty());
    let mut log = scenario.audit_log();
    end(&scenario, "main", 0);
    assert_eq!(until_requested(&scenario, &pod, ""), json!(["log"]));
    assert_eq!(
        kubectl.get("pods", "report").unwrap()["status"]["phase"],
        "Running"
    );

    end(&scenario, "log", 0);
    complete(&scenario, &name_of_request(&pod, ""));
    assert_eq!(
        until_requested(&scenario, &pod, "-ignore-exit-code"),
        json!(["proxy"])
    );
    until_condition(kubectl, "report");
    assert_eq!(
        kubectl.get("pods", "report").unwrap()["status"]["phase"],
        "Succeeded"
    );
    let message = "Kruise SidecarTerminator is trying to terminate sidecar [log] using crr";
    wait::until_true("the event is there", LIMIT, || {
        let events = kubectl.list("events", "")?;
        Ok(events.iter().any(|event| {
            event["reason"] == "SidecarTerminator"
                && event["message"] == message
                && event["involvedObject"]["name"] == "report"
        }))
    })
    .unwrap();

    end(&scenario, "proxy", 137);
    complete(&scenario, &name_of_request(&pod, "-ignore-exit-code"));
    assert_eq!(
        kubectl.get("pods", "report").unwrap()["status"]["phase"],
        "Succeeded"
    );
    let by_controller = log
        .read_new(&format!("{MANAGER}/sidecarterminator-controller"))
        .unwrap();
    let mut written: Vec<String> = by_controller
        .iter()
        .filter(|request| request.is_write() && !request.resource.starts_with("events"))
        .map(|request| format!("{} {}", request.verb, request.resource))
        // The controller ends a request that has done its work, if it is faster than the agent.
        .filter(|write| write != "patch containerrecreaterequests/status")
        .collect();
    written.sort();
    assert_eq!(
        written,
        [
            "create containerrecreaterequests",
            "create containerrecreaterequests",
            "patch pods/status"
        ]
    );
}
