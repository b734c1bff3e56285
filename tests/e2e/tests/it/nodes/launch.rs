//! Containers that start one after the other, by the times at which a kubelet started them.

use kruise_e2e::wait;
use serde_json::{Value, json};

use super::{OnNodes, TOOL, on_nodes, status_of};
use crate::cluster::{LIMIT, text};
use crate::sidecarset::Set;

/// How long a container works before it is ready, in seconds.
const WORK: i64 = 3;
const COMPLETED: &str = "/metadata/annotations/apps.kruise.io~1container-launch-priority-completed";

/// Ready some time after it started, and from then on it does this.
fn slow(name: &str, then: &str) -> Value {
    json!({
        "name": name,
        "image": TOOL,
        "command": ["sh", "-c", format!("sleep {WORK}; touch /tmp/ready; {then}")],
        "readinessProbe": {"exec": {"command": ["cat", "/tmp/ready"]}, "periodSeconds": 1, "timeoutSeconds": 10},
    })
}

fn pod(annotations: Value, containers: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "annotations": annotations},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": containers},
    })
}

/// The pod, once all its containers may start and are ready.
fn until_up(on: &OnNodes, containers: &[&str]) -> Value {
    wait::until("all containers are ready", LIMIT, || {
        let pod = on.scenario.kubectl.get("pods", "web")?;
        let ready = containers
            .iter()
            .all(|name| status_of(&pod, name)["ready"] == true);
        Ok((ready && text(&pod, COMPLETED) == "true").then_some(pod))
    })
    .unwrap()
}

/// Seconds since the beginning of time at which the container that runs was started.
fn started(pod: &Value, container: &str) -> i64 {
    let started = text(status_of(pod, container), "/state/running/startedAt");
    started.parse::<jiff::Timestamp>().unwrap().as_second()
}

/// Each was started after the one before had worked. The times are whole seconds, cut off.
fn assert_in_turn(pod: &Value, containers: &[&str]) {
    for pair in containers.windows(2) {
        let [first, second] = [pair[0], pair[1]].map(|name| started(pod, name));
        assert!(second - first >= WORK - 1, "{pair:?}: {first} {second}");
    }
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn containers_start_in_the_order_of_their_numbers() {
    let on = on_nodes("nodes-launch-numbers");
    let mut proxy = slow("proxy", "sleep 100000");
    proxy["env"] = json!([{"name": "KRUISE_CONTAINER_PRIORITY", "value": "10"}]);
    let mut log = slow("log", "sleep 100000");
    log["env"] = json!([{"name": "KRUISE_CONTAINER_PRIORITY", "value": "-3"}]);
    let containers = json!([log, slow("main", "sleep 100000"), proxy]);
    on.scenario.kubectl.create(&pod(json!({}), &containers)).unwrap();
    let order = ["proxy", "main", "log"];
    assert_in_turn(&until_up(&on, &order), &order);
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn an_injected_sidecar_with_a_number_starts_before_the_container_of_the_pod() {
    let on = on_nodes("nodes-launch-injected");
    let mut proxy = slow("proxy", "sleep 100000");
    proxy["env"] = json!([{"name": "KRUISE_CONTAINER_PRIORITY", "value": "100"}]);
    proxy["podInjectPolicy"] = json!("AfterAppContainer");
    let _set = Set::new(
        &on.scenario,
        "nodes-launch-injected",
        &json!({"containers": [proxy]}),
    );
    let mut web = pod(json!({}), &json!([slow("main", "sleep 100000")]));
    web["metadata"]["labels"] = json!({"app": "web"});
    on.scenario.kubectl.create(&web).unwrap();
    let order = ["proxy", "main"];
    assert_in_turn(&until_up(&on, &order), &order);
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn containers_start_as_they_are_listed_and_again_without_their_barrier() {
    let on = on_nodes("nodes-launch-ordered");
    let kubectl = &on.scenario.kubectl;
    let annotations = json!({"apps.kruise.io/container-launch-priority": "Ordered"});
    // The last one ends from time to time.
    let containers = json!([
        slow("a", "sleep 100000"),
        slow("b", "sleep 100000"),
        slow("c", "sleep 15; exit 1"),
    ]);
    kubectl.create(&pod(annotations, &containers)).unwrap();
    let order = ["a", "b", "c"];
    let up = until_up(&on, &order);
    assert_in_turn(&up, &["a", "b"]);
    let barrier = kubectl.get("configmaps", "web-barrier").unwrap();
    let keys = json!({"p_0": "true", "p_-1": "true", "p_-2": "true"});
    assert_eq!(barrier["data"], keys);

    kubectl.run(&["delete", "configmap", "web-barrier"]).unwrap();
    let again = wait::until("the barrier is back for the one that starts again", LIMIT, || {
        let barriers = kubectl.list("configmaps", "apps.kruise.io/container-launch-barrier=true")?;
        Ok(barriers.into_iter().next())
    })
    .unwrap();
    assert_ne!(again["metadata"]["uid"], barrier["metadata"]["uid"]);
    assert_eq!(again["data"], keys);
    let restarts = |pod: &Value| status_of(pod, "c")["restartCount"].as_u64().unwrap_or_default();
    let before = restarts(&kubectl.get("pods", "web").unwrap());
    wait::until_true("the last one runs again", wait::QUIET, || {
        let pod = kubectl.get("pods", "web")?;
        let status = status_of(&pod, "c");
        let runs = !status["state"]["running"].is_null();
        Ok(runs && (restarts(&pod) > before || restarts(&pod) > restarts(&up)))
    })
    .unwrap();
    let after = kubectl.get("pods", "web").unwrap();
    assert_eq!(
        ["a", "b"].map(|name| status_of(&after, name)["restartCount"].clone()),
        [json!(0), json!(0)]
    );
}
