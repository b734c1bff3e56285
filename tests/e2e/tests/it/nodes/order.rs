//! What waits for what: containers by their priorities, and changes for their grace period. The times are those of
//! the kubelets.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{WEB, containers, identity, on_nodes, server_and_neighbour, status_of, web_of};
use crate::cluster::text;

/// How long a new container cannot be ready.
const DELAY: i64 = 3;

/// Two servers of this image. What has the higher priority takes its time to become ready.
fn by_priority(image: &str) -> Value {
    let server = |name: &str, port: u16, priority: u32| {
        let key = json!({"name": "barrier", "key": format!("p_{priority}"), "optional": true});
        let env = json!([
            {"name": "PORT", "value": port.to_string()},
            {"name": "KRUISE_CONTAINER_BARRIER", "valueFrom": {"configMapKeyRef": key}},
        ]);
        json!({"name": name, "image": image, "env": env})
    };
    let mut first = server("first", 8001, 9);
    let probe = json!({"path": "/version", "port": 8001});
    first["readinessProbe"] = json!({"httpGet": probe, "initialDelaySeconds": DELAY, "periodSeconds": 1});
    json!([server("last", 8002, 1), first])
}

/// A time in an object.
fn time(object: &Value, pointer: &str) -> Timestamp {
    let time = text(object, pointer);
    time.parse()
        .unwrap_or_else(|error| panic!("{pointer} is {time:?}: {error} in {object}"))
}

/// From one time to another, in whole seconds.
fn seconds(from: Timestamp, to: Timestamp) -> i64 {
    to.duration_since(from).as_secs()
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn the_container_with_the_lower_priority_keeps_running_until_the_other_one_is_ready_again() {
    let on = on_nodes("nodes-priorities");
    on.scenario.kubectl.apply(&web_of(1, &by_priority(WEB))).unwrap();
    on.until_updated(1);
    let (before, running) = (on.pod(), on.runtime.processes(&on.pod()));

    on.scenario.patch(&containers(&by_priority("lab.test/web:2")));
    on.until_updated(1);
    let (after, now) = (on.pod(), on.runtime.processes(&on.pod()));
    assert_eq!(identity(&after), identity(&before));
    assert_eq!(now.sandboxes, running.sandboxes);
    for name in ["first", "last"] {
        assert_ne!(now.containers[name].id, running.containers[name].id);
    }
    let began = time(status_of(&after, "first"), "/state/running/startedAt");
    let ended = time(status_of(&after, "last"), "/lastState/terminated/finishedAt");
    assert!(seconds(began, ended) >= DELAY, "{began} to {ended}");
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn a_container_keeps_running_for_the_grace_period_after_its_pod_became_unavailable() {
    let on = on_nodes("nodes-grace");
    let mut set = web_of(1, &server_and_neighbour(WEB));
    set["spec"]["updateStrategy"]["inPlaceUpdateStrategy"] = json!({"gracePeriodSeconds": 6});
    on.scenario.kubectl.apply(&set).unwrap();
    on.until_updated(1);
    let before = on.pod();

    on.scenario
        .patch(&containers(&server_and_neighbour("lab.test/web:2")));
    on.until_updated(1);
    let after = on.pod();
    assert_eq!(identity(&after), identity(&before));
    // The pod left service, and then this was written.
    let state = text(
        &after,
        "/metadata/annotations/apps.kruise.io~1inplace-update-state",
    );
    let left = time(&serde_json::from_str(&state).unwrap(), "/updateTimestamp");
    let ended = time(status_of(&after, "main"), "/lastState/terminated/finishedAt");
    assert!(seconds(left, ended) >= 6, "{left} to {ended}");
}
