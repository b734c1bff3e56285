//! Nodes that are not well, and what becomes of their pods.

use std::time::Duration;

use serde_json::{Value, json};

use crate::nodes::Options;
use crate::world::tests::{PODS, Play, condition, is_ready, pod};

const NODE: &str = "/api/v1/nodes/n1";

fn play() -> Play {
    let mut play = Play::new(&Options {
        events: true,
        ..Options::default()
    });
    play.node("n1");
    play.rest();
    play
}

fn set_condition(play: &mut Play, kind: &str, status: &str) {
    let body = json!({"status": {"conditions": [{"type": kind, "status": status}]}});
    play.strategic(&format!("{NODE}/status"), &body);
    play.pass(Duration::ZERO);
}

fn taints(play: &mut Play) -> Vec<String> {
    let node = play.get(NODE).unwrap();
    let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let mut names: Vec<String> = taints
        .iter()
        .map(|taint| {
            let key = taint["key"]
                .as_str()
                .unwrap()
                .trim_start_matches("node.kubernetes.io/");
            format!("{key}:{}", taint["effect"].as_str().unwrap())
        })
        .collect();
    names.sort();
    names
}

fn tolerant(name: &str, tolerations: &Value) -> Value {
    let mut pod = pod(name);
    pod["spec"]["tolerations"] = tolerations.clone();
    pod
}

fn exists(play: &mut Play, name: &str) -> bool {
    let pod = play.get(&format!("{PODS}/{name}"));
    pod.is_some_and(|pod| pod["metadata"]["deletionTimestamp"].is_null())
}

fn events(play: &mut Play, reason: &str) -> Vec<String> {
    let all = play.get("/api/v1/namespaces/default/events").unwrap();
    let all = all["items"].as_array().unwrap().clone();
    all.iter()
        .filter(|event| event["reason"] == reason)
        .map(|event| event["message"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn taints_of_a_node_follow_its_conditions_and_its_cordon() {
    let mut play = play();
    let theirs = json!({"key": "gpu", "value": "yes", "effect": "NoSchedule"});
    play.merge(NODE, &json!({"spec": {"taints": [theirs]}}));
    let cases: [(&str, &str, &[&str]); 7] = [
        ("Ready", "False", &["not-ready:NoExecute", "not-ready:NoSchedule"]),
        (
            "Ready",
            "Unknown",
            &["unreachable:NoExecute", "unreachable:NoSchedule"],
        ),
        ("Ready", "True", &[]),
        ("MemoryPressure", "True", &["memory-pressure:NoSchedule"]),
        ("MemoryPressure", "False", &[]),
        ("DiskPressure", "True", &["disk-pressure:NoSchedule"]),
        ("DiskPressure", "Unknown", &[]),
    ];
    for (kind, status, expected) in cases {
        set_condition(&mut play, kind, status);
        let mut expected: Vec<&str> = expected.iter().copied().chain(["gpu:NoSchedule"]).collect();
        expected.sort_unstable();
        assert_eq!(taints(&mut play), expected, "{kind} {status}");
    }
    for (cordoned, expected) in [
        (true, vec!["gpu:NoSchedule", "unschedulable:NoSchedule"]),
        (false, vec!["gpu:NoSchedule"]),
    ] {
        play.merge(NODE, &json!({"spec": {"unschedulable": cordoned}}));
        play.rest();
        assert_eq!(taints(&mut play), expected);
    }
}

#[test]
fn pods_leave_a_tainted_node_unless_they_tolerate_it_and_as_long_as_they_do() {
    let mut play = play();
    let of = |seconds: Value| json!([{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}]);
    play.post(PODS, &pod("never"));
    play.post(PODS, &tolerant("ten", &of(json!(10))));
    play.post(PODS, &tolerant("zero", &of(json!(-1))));
    play.post(PODS, &tolerant("for-ever", &of(Value::Null)));
    let least = json!([{"operator": "Exists", "key": "k"}, {"operator": "Exists", "key": "l", "tolerationSeconds": 20,
        "effect": "NoExecute"}]);
    play.post(PODS, &tolerant("twenty", &least));
    play.rest();
    let taint = |key: &str| json!({"key": key, "effect": "NoExecute"});
    play.merge(NODE, &json!({"spec": {"taints": [taint("k")]}}));
    play.pass(Duration::ZERO);
    let there = |play: &mut Play| {
        ["never", "zero", "ten", "twenty", "for-ever"].map(|name| u8::from(exists(play, name)))
    };
    assert_eq!(there(&mut play), [0, 0, 1, 1, 1]);
    let why = condition(&play.pod("never"), "DisruptionTarget");
    assert_eq!(
        (why.0.as_str(), why.1.as_str()),
        ("True", "DeletionByTaintManager")
    );
    play.pass(Duration::from_secs(9));
    assert_eq!(there(&mut play), [0, 0, 1, 1, 1]);
    // Another change of the node does not begin the time anew.
    play.merge(NODE, &json!({"metadata": {"labels": {"a": "b"}}}));
    play.pass(Duration::from_secs(1));
    assert_eq!(there(&mut play), [0, 0, 0, 1, 1]);
    play.merge(NODE, &json!({"spec": {"taints": [taint("k"), taint("l")]}}));
    play.pass(Duration::ZERO);
    assert_eq!(
        there(&mut play),
        [0, 0, 0, 1, 0],
        "for ever is for the tolerated taint"
    );
    play.pass(Duration::from_secs(19));
    play.merge(NODE, &json!({"spec": {"taints": null}}));
    play.rest();
    assert_eq!(
        there(&mut play),
        [0, 0, 0, 1, 0],
        "the taint went before the time did"
    );
    assert_eq!(play.0.next_due(), None);
    let evicted = events(&mut play, "TaintManagerEviction");
    assert!(
        evicted.contains(&"Marking for deletion Pod default/ten".to_owned()),
        "{evicted:?}"
    );
}

#[test]
fn a_pod_that_comes_to_a_tainted_node_leaves_it_too() {
    let mut play = play();
    play.merge(
        NODE,
        &json!({"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}),
    );
    let mut placed = pod("placed");
    placed["spec"]["nodeName"] = "n1".into();
    play.post(PODS, &placed);
    let waiting = play.post(PODS, &pod("waiting"));
    play.rest();
    assert!(!exists(&mut play, "placed"));
    assert!(exists(&mut play, "waiting") && waiting["spec"]["nodeName"].is_null());
    let why = condition(&play.pod("waiting"), "PodScheduled").2;
    assert!(why.contains("untolerated taint {k: }"), "{why}");
}

#[test]
fn pods_of_a_node_that_does_not_answer_are_not_ready_and_end_when_it_does_again() {
    let mut play = play();
    let stays = json!([{"key": "node.kubernetes.io/unreachable", "operator": "Exists"}]);
    for name in ["a", "b"] {
        play.post(PODS, &tolerant(name, &stays));
    }
    play.rest();
    set_condition(&mut play, "Ready", "Unknown");
    play.rest();
    assert!(!is_ready(&play.pod("a")));
    assert_eq!(play.pod("a")["status"]["phase"], "Running");
    assert_eq!(
        events(&mut play, "NodeNotReady"),
        ["Node is not ready", "Node is not ready"]
    );
    play.delete(&format!("{PODS}/b"));
    let image = json!({"spec": {"containers": [{"name": "main", "image": "web:2"}]}});
    play.strategic(&format!("{PODS}/a"), &image);
    play.pass(Duration::from_mins(10));
    assert!(!is_ready(&play.pod("a")), "nobody reports it");
    assert_eq!(play.pod("a")["status"]["containerStatuses"][0]["image"], "web:1");
    let left = play.pod("b");
    assert!(!left["metadata"]["deletionTimestamp"].is_null(), "nobody ends it");
    set_condition(&mut play, "Ready", "True");
    play.rest();
    assert_eq!(play.get(&format!("{PODS}/b")), None);
    let pod = play.pod("a");
    assert!(is_ready(&pod), "{}", pod["status"]);
    assert_eq!(pod["status"]["containerStatuses"][0]["image"], "web:2");
}

#[test]
fn what_a_node_began_before_it_went_silent_it_ends_when_it_is_back() {
    let mut play = play();
    play.post(PODS, &pod("a"));
    // In the middle of a start.
    play.pass(Duration::from_secs(1));
    set_condition(&mut play, "Ready", "Unknown");
    play.pass(Duration::from_secs(30));
    assert_eq!(play.pod("a")["status"]["phase"], "Pending");
    set_condition(&mut play, "Ready", "True");
    play.rest();
    assert!(is_ready(&play.pod("a")));
}

#[test]
fn an_ordinary_pod_leaves_a_node_that_is_not_ready_after_five_minutes() {
    for status in ["False", "Unknown"] {
        let mut play = play();
        play.node("n2");
        let mut placed = pod("a");
        placed["spec"]["nodeName"] = "n1".into();
        play.post(PODS, &placed);
        play.pass(Duration::from_secs(20));
        set_condition(&mut play, "Ready", status);
        play.pass(Duration::from_secs(299));
        assert!(exists(&mut play, "a"), "{status}");
        play.pass(Duration::from_secs(2));
        assert!(!exists(&mut play, "a"), "{status}");
    }
}
