//! ContainerRecreateRequests on real nodes: which processes end, and which go on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use kruise_e2e::wait;
use serde_json::{Value, json};

use super::agent::Agents;
use super::runtime::version_at;
use super::{OnNodes, WEB, identity, on_nodes_alone, status_of, web_of};
use crate::cluster::{LIMIT, text};

const REQUESTS: &str = "containerrecreaterequests";
/// The containers of the pod, and the ports at which they serve.
const SERVERS: [(&str, u16); 3] = [("first", 80), ("second", 8080), ("third", 8081)];

/// A pod with three servers, of which the second one has a hook that takes two seconds.
fn three_servers(on: &OnNodes) -> Value {
    let server = |(name, port): (&str, u16)| json!({"name": name, "image": WEB, "env": [{"name": "PORT", "value": port.to_string()}]});
    let mut containers = json!(SERVERS.map(server));
    containers[1]["lifecycle"] = json!({"preStop": {"exec": {"command": ["sleep", "2"]}}});
    on.scenario.kubectl.apply(&web_of(1, &containers)).unwrap();
    on.until_updated(1);
    let pod = on.pod();
    wait::until_true("all servers answer", LIMIT, || {
        Ok(SERVERS
            .iter()
            .all(|(_, port)| version_at(&pod, *port).as_deref() == Some("1")))
    })
    .unwrap();
    pod
}

fn request(name: &str, pod: &Value, container: &str) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest", "metadata": {"name": name},
        "spec": {"podName": text(pod, "/metadata/name"), "containers": [{"name": container}],
            "activeDeadlineSeconds": 600},
    })
}

/// Waits until a request has ended; returns its status.
fn until_completed(on: &OnNodes, name: &str) -> Value {
    wait::until(&format!("request {name} has ended"), wait::QUIET, || {
        let status = on.scenario.kubectl.get(REQUESTS, name)?["status"].clone();
        Ok((status["phase"] == "Completed").then_some(status))
    })
    .unwrap()
}

/// Asserts that a container was stopped for a request, and that its successor is ready.
fn assert_replaced(status: &Value, container: &str) {
    let state = &status["containerRecreateStates"][0];
    assert_eq!(
        (&state["name"], &state["phase"], &state["isKilled"]),
        (&json!(container), &json!("Succeeded"), &json!(true)),
        "{status}"
    );
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn one_of_three_containers_is_replaced_while_the_others_serve_every_request() {
    let on = on_nodes_alone("nodes-recreate");
    let _agents = Agents::start(&on);
    let before = three_servers(&on);
    let running = on.runtime.processes(&before);
    let is_over = AtomicBool::new(false);
    let (status, asked, lost) = thread::scope(|scope| {
        let client = scope.spawn(|| {
            let (mut asked, mut lost) = (0_u32, Vec::new());
            while !is_over.load(Ordering::Relaxed) {
                for port in [80, 8081] {
                    asked += 1;
                    let answer = version_at(&before, port);
                    if answer.as_deref() != Some("1") {
                        lost.push((port, asked, answer));
                    }
                }
                thread::sleep(Duration::from_millis(20));
            }
            (asked, lost)
        });
        let kubectl = &on.scenario.kubectl;
        let created = kubectl.create(&request("second", &before, "second"));
        let ended = created.map(|_| until_completed(&on, "second"));
        is_over.store(true, Ordering::Relaxed);
        let (asked, lost) = client.join().unwrap();
        (ended.unwrap(), asked, lost)
    });
    assert_replaced(&status, "second");
    assert!(asked >= 50, "{asked}");
    assert_eq!(lost, []);

    let (after, now) = (on.pod(), on.runtime.processes(&on.pod()));
    assert_eq!(identity(&after), identity(&before));
    assert_eq!(now.sandboxes, running.sandboxes);
    for kept in ["first", "third"] {
        assert_eq!(now.containers[kept], running.containers[kept], "{kept}");
        assert_eq!(status_of(&after, kept)["restartCount"], 0);
    }
    assert_ne!(now.containers["second"].id, running.containers["second"].id);
    assert_eq!(status_of(&after, "second")["restartCount"], 1);
    wait::until_true("the new container serves", LIMIT, || {
        Ok(version_at(&after, 8080).as_deref() == Some("1"))
    })
    .unwrap();
    let message = "Stopping container second by ContainerRecreateRequest second";
    wait::until_true("the event is there", LIMIT, || {
        let events = on.scenario.kubectl.list("events", "")?;
        Ok(events.iter().any(|event| {
            event["message"] == message && event["involvedObject"]["fieldPath"] == "spec.containers{second}"
        }))
    })
    .unwrap();
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn of_two_requests_for_a_pod_the_second_one_runs_after_the_first_one() {
    let on = on_nodes_alone("nodes-recreate-twice");
    let _agents = Agents::start(&on);
    let before = three_servers(&on);
    let kubectl = &on.scenario.kubectl;
    for container in ["second", "third"] {
        kubectl.create(&request(container, &before, container)).unwrap();
    }
    let waiting = "Waiting for ContainerRecreateRequest second of the same pod";
    wait::until_true("the second request waits", LIMIT, || {
        let status = kubectl.get(REQUESTS, "third")?["status"].clone();
        Ok(status["phase"] == "Pending" && status["message"] == waiting)
    })
    .unwrap();
    for container in ["second", "third"] {
        assert_replaced(&until_completed(&on, container), container);
    }
    let after = on.pod();
    assert_eq!(identity(&after), identity(&before));
    let restarts = SERVERS.map(|(name, _)| status_of(&after, name)["restartCount"].clone());
    assert_eq!(restarts, [json!(0), json!(1), json!(1)]);
}
