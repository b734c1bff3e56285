//! The life of pods, as a watch shows it.

mod daemon;
mod ephemeral;
mod events;
mod held;
mod properties;
mod resize;
mod runtime;
mod stages;
mod versions;

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::Options;
use crate::world::tests::{PODS, Play, condition, is_ready, pod};

const GATE: &str = "InPlaceUpdateReady";

/// A container's status in one word: how it waits, runs (with its image) or ended.
fn container(status: &Value) -> String {
    let text = |pointer: &str| {
        status
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let state = if status.pointer("/state/running").is_some() {
        format!("running {}", text("/image"))
    } else if let Some(code) = status.pointer("/state/terminated/exitCode") {
        format!("ended {code}")
    } else {
        text("/state/waiting/reason").to_owned()
    };
    let ready = if status["ready"] == true { "+" } else { "-" };
    format!("{}{ready}{} {state}", text("/name"), status["restartCount"])
}

/// One line: the event, the phase, the conditions that hold, why the pod is not ready, containers.
fn line((kind, pod): &(String, Value)) -> String {
    let short = [
        ("PodScheduled", "S"),
        ("PodReadyToStartContainers", "B"),
        ("Initialized", "I"),
        ("ContainersReady", "C"),
        ("Ready", "R"),
    ];
    let holds: String = short
        .iter()
        .filter(|(kind, _)| condition(pod, kind).0 == "True")
        .map(|(_, short)| *short)
        .collect();
    let lists = ["initContainerStatuses", "containerStatuses"];
    let statuses = lists
        .iter()
        .filter_map(|list| pod["status"][list].as_array())
        .flatten();
    let containers: Vec<String> = statuses.map(container).collect();
    let (_, why, _) = condition(pod, "Ready");
    let phase = pod["status"]["phase"].as_str().unwrap();
    format!("{kind} {phase} [{holds}] {why} ({})", containers.join(", "))
}

fn play() -> Play {
    let mut play = Play::new(&Options::default());
    play.node("n1");
    play.rest();
    play
}

/// The lines of everything that happens to pods while `act` plays.
fn lines(play: &mut Play, act: impl FnOnce(&mut Play)) -> Vec<String> {
    play.rest();
    let revision = play.0.api().revision();
    let watch = play.watch(&format!("{PODS}?watch=true&resourceVersion={revision}"));
    act(play);
    play.events(watch).iter().map(line).collect()
}

fn with_spec(name: &str, more: &Value) -> Value {
    let mut pod = pod(name);
    pod["spec"]
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    pod
}

#[test]
fn a_pod_starts_as_on_a_kubelet() {
    let mut play = play();
    let seen = lines(&mut play, |play| {
        play.post(PODS, &pod("a"));
        play.rest();
    });
    let expected = [
        "ADDED Pending []  ()",
        "MODIFIED Pending [S]  ()",
        "MODIFIED Pending [SI] ContainersNotReady (main-0 ContainerCreating)",
        "MODIFIED Running [SBICR]  (main+0 running web:1)",
    ];
    assert_eq!(seen, expected);
    let pod = play.pod("a");
    let status = &pod["status"]["containerStatuses"][0];
    assert!(status["imageID"].as_str().unwrap().starts_with("web@sha256:"));
    assert!(
        status["containerID"]
            .as_str()
            .unwrap()
            .starts_with("containerd://")
    );
    assert_eq!(status["started"], true);
    assert_eq!(pod["status"]["podIP"], pod["status"]["podIPs"][0]["ip"]);
    // sandbox 0.8 s, pull 5 s, start 0.4 s
    assert_eq!(status["state"]["running"]["startedAt"], "2026-01-01T00:00:06Z");
    assert_eq!(pod["status"]["startTime"], "2026-01-01T00:00:00Z");
}

#[test]
fn unready_containers_are_named() {
    let mut play = play();
    let two = json!({"containers": [{"name": "a", "image": "a:1"},
        {"name": "b", "image": "b:1", "readinessProbe": {"initialDelaySeconds": 30, "tcpSocket": {"port": 1}}}]});
    play.post(PODS, &with_spec("p", &two));
    play.pass(Duration::ZERO);
    let message = "containers with unready status: [a b]";
    assert_eq!(
        condition(&play.pod("p"), "Ready"),
        ("False".into(), "ContainersNotReady".into(), message.into())
    );
    play.pass(Duration::from_secs(20));
    let message = "containers with unready status: [b]";
    assert_eq!(condition(&play.pod("p"), "ContainersReady").2, message);
    assert_eq!(play.pod("p")["status"]["phase"], "Running");
    play.rest();
    assert_eq!(
        condition(&play.pod("p"), "Ready"),
        ("True".into(), String::new(), String::new())
    );
}

#[test]
fn a_pod_is_ready_once_all_its_gates_are_open() {
    let mut play = play();
    let gates = json!({"readinessGates": [{"conditionType": GATE}, {"conditionType": "x/Other"}]});
    play.post(PODS, &with_spec("p", &gates));
    play.rest();
    let ready = |play: &mut Play| condition(&play.pod("p"), "Ready");
    let absent =
        |gate: &str| format!("corresponding condition of pod readiness gate {gate:?} does not exist.");
    let (status, reason, message) = ready(&mut play);
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("False", "ReadinessGatesNotReady")
    );
    assert_eq!(message, format!("{}, {}", absent(GATE), absent("x/Other")));
    assert_eq!(condition(&play.pod("p"), "ContainersReady").0, "True");
    let set = |play: &mut Play, gate: &str, status: &str| {
        let body = json!({"status": {"conditions": [{"type": gate, "status": status}]}});
        play.strategic(&format!("{PODS}/p/status"), &body);
        play.rest();
        ready(play)
    };
    assert_eq!(set(&mut play, GATE, "True").2, absent("x/Other"));
    let closed = set(&mut play, "x/Other", "False").2;
    assert_eq!(
        closed,
        "the status of pod readiness gate \"x/Other\" is not \"True\", but False"
    );
    assert_eq!(
        set(&mut play, "x/Other", "True"),
        ("True".into(), String::new(), String::new())
    );
    assert_eq!(set(&mut play, GATE, "False").0, "False");
}

#[test]
fn another_image_restarts_only_its_container() {
    let mut play = play();
    let two =
        json!({"containers": [{"name": "main", "image": "web:1"}, {"name": "side", "image": "side:1"}]});
    play.post(PODS, &with_spec("p", &two));
    play.rest();
    let before = play.pod("p");
    let seen = lines(&mut play, |play| {
        play.strategic(
            &format!("{PODS}/p"),
            &json!({"spec": {"containers": [{"name": "main", "image": "web:2"}]}}),
        );
        play.rest();
    });
    let running = "MODIFIED Running [SBICR]  (main+0 running web:1, side+0 running side:1)";
    let expected = [
        running,
        // its node has seen the change
        running,
        "MODIFIED Running [SBI] ContainersNotReady (main-0 ended 0, side+0 running side:1)",
        "MODIFIED Running [SBICR]  (main+1 running web:2, side+0 running side:1)",
    ];
    assert_eq!(seen, expected);
    let after = play.pod("p");
    let [old, new] = [&before, &after].map(|pod| &pod["status"]["containerStatuses"]);
    assert_eq!(old[1], new[1], "the other container is as it was");
    for name in ["imageID", "containerID"] {
        assert_ne!(old[0][name], new[0][name], "{name}");
    }
    let ended = &new[0]["lastState"]["terminated"];
    assert_eq!(
        (&ended["exitCode"], &ended["containerID"]),
        (&json!(0), &old[0]["containerID"])
    );
    assert_eq!(before["status"]["podIP"], after["status"]["podIP"]);
}

#[test]
fn init_containers_run_in_order_and_sidecars_stay() {
    let mut play = play();
    // one image: pulls, which go one at a time, are not what orders the containers
    let init = json!({"initContainers": [{"name": "first", "image": "web:1"},
        {"name": "side", "image": "web:1", "restartPolicy": "Always"}, {"name": "last", "image": "web:1"}]});
    let seen = lines(&mut play, |play| {
        play.post(PODS, &with_spec("p", &init));
        play.rest();
    });
    let waits = "PodInitializing";
    let why = "ContainersNotReady";
    let expected = [
        "ADDED Pending []  ()".to_owned(),
        "MODIFIED Pending [S]  ()".into(),
        format!("MODIFIED Pending [S] {why} (first-0 {waits}, side-0 {waits}, last-0 {waits}, main-0 {waits})"),
        format!("MODIFIED Pending [SB] {why} (first-0 running web:1, side-0 {waits}, last-0 {waits}, main-0 {waits})"),
        format!("MODIFIED Pending [SB] {why} (first+0 ended 0, side-0 {waits}, last-0 {waits}, main-0 {waits})"),
        format!("MODIFIED Pending [SB] {why} (first+0 ended 0, side+0 running web:1, last-0 {waits}, main-0 {waits})"),
        format!("MODIFIED Pending [SB] {why} (first+0 ended 0, side+0 running web:1, last-0 running web:1, main-0 {waits})"),
        format!("MODIFIED Pending [SBI] {why} (first+0 ended 0, side+0 running web:1, last+0 ended 0, main-0 {waits})"),
        "MODIFIED Running [SBICR]  (first+0 ended 0, side+0 running web:1, last+0 ended 0, main+0 running web:1)".into(),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn a_deleted_pod_stops_before_it_is_removed_and_its_grace_period_bounds_that() {
    let mut play = play();
    let sleeps = json!({"containers": [{"name": "main", "image": "web:1",
        "lifecycle": {"preStop": {"sleep": {"seconds": 60}}}}]});
    play.post(PODS, &pod("quick"));
    play.post(PODS, &with_spec("slow", &sleeps));
    for (name, seconds, end) in [
        ("quick", 1, "Succeeded [SI] PodCompleted (main-0 ended 0)"),
        ("slow", 30, "Failed [SI] PodFailed (main-0 ended 137)"),
    ] {
        let mut before = None;
        let seen = lines(&mut play, |play| {
            before = Some(play.0.now());
            play.delete(&format!("{PODS}/{name}"));
            play.rest();
        });
        // the deletion, and its node has seen it
        assert_eq!(
            seen[..2],
            ["MODIFIED Running [SBICR]  (main+0 running web:1)"; 2],
            "{name}"
        );
        assert_eq!(
            seen[2..],
            [
                format!("MODIFIED {end}"),
                format!("MODIFIED {end}"),
                format!("DELETED {end}")
            ],
            "{name}"
        );
        let took = play.0.now().duration_since(before.unwrap());
        assert_eq!(took.as_secs(), seconds, "{name}");
    }
}

#[test]
fn a_pod_that_somebody_else_has_ended_is_stopped_and_keeps_its_phase() {
    let mut play = play();
    play.post(PODS, &pod("p"));
    play.rest();
    let ended = json!({"status": {"phase": "Failed",
        "conditions": [{"type": "SidecarTerminated", "status": "True"}]}});
    let seen = lines(&mut play, |play| {
        play.strategic(&format!("{PODS}/p/status"), &ended);
        play.rest();
    });
    assert!(
        seen.iter().all(|line| line.starts_with("MODIFIED Failed")),
        "{seen:?}"
    );
    assert_eq!(
        seen.last().map(String::as_str),
        Some("MODIFIED Failed [SI] PodFailed (main-0 ended 0)")
    );
}

#[test]
fn sidecars_stop_after_the_containers_they_serve() {
    let mut play = play();
    let side = json!({"initContainers": [{"name": "side", "image": "s:1", "restartPolicy": "Always"}]});
    play.post(PODS, &with_spec("p", &side));
    let seen = lines(&mut play, |play| {
        play.delete(&format!("{PODS}/p"));
        play.rest();
    });
    let end = "Succeeded [SI] PodCompleted (side-0 ended 0, main-0 ended 0)";
    let running = "MODIFIED Running [SBICR]  (side+0 running s:1, main+0 running web:1)";
    let expected = [
        running.to_owned(),
        // its node has seen the deletion
        running.into(),
        "MODIFIED Running [SBI] ContainersNotReady (side+0 running s:1, main-0 ended 0)".into(),
        format!("MODIFIED {end}"),
        // its grace period ends, and it goes
        format!("MODIFIED {end}"),
        format!("DELETED {end}"),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn a_hook_that_sleeps_delays_a_change_of_image() {
    let mut play = play();
    let sleeps = json!({"containers": [{"name": "main", "image": "web:1",
        "lifecycle": {"preStop": {"sleep": {"seconds": 7}}}}]});
    play.post(PODS, &with_spec("p", &sleeps));
    play.rest();
    let change = json!({"spec": {"containers": [{"name": "main", "image": "web:2"}]}});
    play.strategic(&format!("{PODS}/p"), &change);
    play.pass(Duration::from_millis(7900));
    assert_eq!(
        container(&play.pod("p")["status"]["containerStatuses"][0]),
        "main+0 running web:1"
    );
    play.pass(Duration::from_millis(100));
    assert_eq!(
        container(&play.pod("p")["status"]["containerStatuses"][0]),
        "main-0 ended 0"
    );
}

#[test]
fn a_finalizer_holds_a_stopped_pod() {
    let mut play = play();
    let mut held = pod("p");
    held["metadata"]["finalizers"] = json!(["x/hold"]);
    play.post(PODS, &held);
    play.rest();
    play.delete(&format!("{PODS}/p"));
    play.rest();
    assert_eq!(play.pod("p")["status"]["phase"], "Succeeded");
    play.merge(&format!("{PODS}/p"), &json!({"metadata": {"finalizers": null}}));
    play.rest();
    assert_eq!(play.get(&format!("{PODS}/p")), None);
}

#[test]
fn a_node_comes_up_and_keeps_what_it_was_given() {
    let mut play = Play::new(&Options::default());
    play.post(
        "/api/v1/nodes",
        &json!({"metadata": {"name": "n1"}, "status": {"capacity": {"cpu": "2", "pods": "5"}}}),
    );
    play.rest();
    let node = play.get("/api/v1/nodes/n1").unwrap();
    assert_eq!(condition(&node, "Ready").0, "True");
    assert_eq!(node["status"]["allocatable"], json!({"cpu": "2", "pods": "5"}));
    assert_eq!(node["spec"]["taints"].as_array().map_or(0, Vec::len), 0);
    assert_eq!(
        node["status"]["addresses"][0],
        json!({"type": "InternalIP", "address": "172.16.0.1"})
    );
}

#[test]
fn pods_never_share_an_address() {
    let mut play = play();
    play.node("n2");
    let mut seen = BTreeSet::new();
    for round in 0..3 {
        for number in 0..20 {
            play.post(PODS, &pod(&format!("p{number}")));
        }
        play.rest();
        for number in 0..20 {
            let name = format!("p{number}");
            let address = play.pod(&name)["status"]["podIP"].as_str().unwrap().to_owned();
            assert!(seen.insert(address), "round {round}");
            play.delete(&format!("{PODS}/{name}"));
        }
        play.rest();
    }
}

#[test]
fn an_agent_that_is_new_to_a_pod_takes_over_what_runs() {
    let mut play = Play::new(&Options::default());
    let placed = with_spec("p", &json!({"nodeName": "n1"}));
    play.post(PODS, &placed);
    let started = "2025-12-31T00:00:00Z";
    let status = json!({"status": {"startTime": started, "podIP": "10.128.0.77", "containerStatuses": [{
        "name": "main", "image": "web:1", "imageID": "x", "restartCount": 4, "ready": true,
        "state": {"running": {"startedAt": started}}}]}});
    play.strategic(&format!("{PODS}/p/status"), &status);
    play.node("n1");
    play.rest();
    let pod = play.pod("p");
    let status = &pod["status"]["containerStatuses"][0];
    assert_eq!(
        (&status["restartCount"], &status["state"]["running"]["startedAt"]),
        (&json!(4), &json!(started))
    );
    assert_eq!(
        (&pod["status"]["podIP"], &pod["status"]["startTime"]),
        (&json!("10.128.0.77"), &json!(started))
    );
    assert!(is_ready(&pod));
}

#[test]
fn pods_of_a_deleted_node_are_deleted_too() {
    let mut play = play();
    play.post(PODS, &pod("p"));
    play.rest();
    play.delete("/api/v1/nodes/n1");
    play.rest();
    assert_eq!(play.get(&format!("{PODS}/p")), None);
}

#[test]
fn a_node_may_come_back_in_time_and_its_pods_stay() {
    let mut play = Play::new(&Options {
        patience: SignedDuration::from_secs(40),
        ..Options::default()
    });
    play.node("n1");
    play.post(PODS, &pod("a"));
    play.rest();
    for (gone, stays) in [(39, true), (41, false)] {
        play.delete("/api/v1/nodes/n1");
        play.pass(Duration::from_secs(gone));
        play.node("n1");
        play.rest();
        assert_eq!(
            play.get(&format!("{PODS}/a")).is_some(),
            stays,
            "gone for {gone} s"
        );
    }
}
