//! Where pods go, by table and by play.

use std::time::Duration;

use serde_json::{Value, json};

use crate::nodes::Options;
use crate::world::tests::{PODS, Play, condition, is_ready};

/// Three nodes: two in zone a, one tainted in zone b; each of 4 CPUs and 8 pods.
fn play() -> Play {
    let mut play = Play::new(&Options::default());
    for (name, zone, taints) in [
        ("n1", "a", json!([])),
        ("n2", "a", json!([])),
        (
            "n3",
            "b",
            json!([{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]),
        ),
    ] {
        let labels =
            json!({"zone": zone, "kubernetes.io/hostname": name, "size": name.trim_start_matches('n')});
        let node = json!({"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints},
            "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "8"}}});
        play.post("/api/v1/nodes", &node);
    }
    play.rest();
    play
}

fn create(play: &mut Play, name: &str, spec: &Value) -> Value {
    let mut pod = json!({"metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "web:1"}]}});
    pod["spec"]
        .as_object_mut()
        .unwrap()
        .extend(spec.as_object().unwrap().clone());
    play.post(PODS, &pod);
    play.rest();
    play.pod(name)
}

fn node(pod: &Value) -> &str {
    pod["spec"]["nodeName"].as_str().unwrap_or_default()
}

fn cpu(amount: &str) -> Value {
    json!({"containers": [{"name": "main", "image": "web:1", "resources": {"requests": {"cpu": amount}}}]})
}

#[test]
fn a_pod_is_placed_where_it_requires_or_has_the_reason() {
    let gpu = json!([{"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}]);
    let affinity = |requirement: Value| {
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}}}})
    };
    let unmatched = "node(s) didn't match Pod's node affinity/selector";
    let tainted = "1 node(s) had untolerated taint {gpu: yes}";
    let cases = [
        (json!({}), "n1".to_owned()),
        (
            json!({"nodeSelector": {"kubernetes.io/hostname": "n2"}}),
            "n2".into(),
        ),
        (
            json!({"nodeSelector": {"zone": "b"}}),
            format!("0/3 nodes are available: {tainted}, 2 {unmatched}."),
        ),
        (
            json!({"nodeSelector": {"zone": "b"}, "tolerations": gpu}),
            "n3".into(),
        ),
        (
            json!({"nodeSelector": {"zone": "b"}, "tolerations": [{"key": "gpu", "value": "no"}]}),
            format!("0/3 nodes are available: {tainted}, 2 {unmatched}."),
        ),
        (
            affinity(json!({"key": "size", "operator": "Gt", "values": ["1"]})),
            "n2".into(),
        ),
        (
            affinity(json!({"key": "size", "operator": "NotIn", "values": ["1"]})),
            "n2".into(),
        ),
        (
            affinity(json!({"key": "none", "operator": "Exists"})),
            format!("0/3 nodes are available: {tainted}, 2 {unmatched}."),
        ),
        (cpu("4"), "n1".into()),
        (
            cpu("4001m"),
            format!("0/3 nodes are available: {tainted}, 2 Insufficient cpu."),
        ),
    ];
    for (spec, expected) in cases {
        let mut play = play();
        let pod = create(&mut play, "p", &spec);
        if expected.starts_with("0/") {
            let found = condition(&pod, "PodScheduled");
            assert_eq!(
                found,
                ("False".into(), "Unschedulable".into(), expected),
                "{spec}"
            );
            assert_eq!(node(&pod), "");
        } else {
            assert_eq!(
                node(&pod),
                expected,
                "{spec}: {:?}",
                condition(&pod, "PodScheduled")
            );
            assert!(is_ready(&pod));
        }
    }
}

#[test]
fn without_nodes_a_pod_waits_for_one() {
    let mut play = Play::new(&Options::default());
    let pod = create(&mut play, "p", &json!({}));
    assert_eq!(
        condition(&pod, "PodScheduled").2,
        "no nodes available to schedule pods"
    );
    let events = play.get("/api/v1/namespaces/default/events").unwrap();
    assert_eq!(events["items"][0]["reason"], "FailedScheduling");
    play.node("n1");
    play.rest();
    assert!(is_ready(&play.pod("p")));
}

#[test]
fn pods_spread_and_a_full_node_takes_the_next_when_one_leaves() {
    let mut play = play();
    let mut counts = std::collections::BTreeMap::new();
    for number in 0..17 {
        let pod = create(&mut play, &format!("p{number:02}"), &json!({}));
        *counts.entry(node(&pod).to_owned()).or_insert(0) += 1;
    }
    let expected = [(String::new(), 1), ("n1".into(), 8), ("n2".into(), 8)];
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), expected);
    let why = condition(&play.pod("p16"), "PodScheduled").2;
    assert_eq!(
        why,
        "0/3 nodes are available: 1 node(s) had untolerated taint {gpu: yes}, 2 Too many pods."
    );
    play.delete(&format!("{PODS}/p03"));
    play.rest();
    assert_eq!(node(&play.pod("p16")), "n2");
    assert!(is_ready(&play.pod("p16")));
}

#[test]
fn resources_are_counted_with_init_containers_and_sidecars() {
    let request = |cpu: &str| json!({"requests": {"cpu": cpu}});
    let spec = |init: &str, sidecar: &str, main: &str| {
        json!({"nodeSelector": {"kubernetes.io/hostname": "n1"}, "initContainers": [
            {"name": "s", "image": "s", "restartPolicy": "Always", "resources": request(sidecar)},
            {"name": "i", "image": "i", "resources": request(init)}],
            "containers": [{"name": "m", "image": "m", "resources": request(main)}]})
    };
    for (init, sidecar, main, fits) in [
        ("3", "1", "3", true),
        ("3500m", "1", "1", false),
        ("1", "2", "2001m", false),
    ] {
        let mut play = play();
        let pod = create(&mut play, "p", &spec(init, sidecar, main));
        assert_eq!(node(&pod) == "n1", fits, "{init} {sidecar} {main}");
    }
}

#[test]
fn a_hard_spread_constraint_bounds_the_skew() {
    let mut play = play();
    let spread = |when: &str| {
        json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": when,
            "labelSelector": {"matchLabels": {"app": "web"}}}]})
    };
    assert_eq!(node(&create(&mut play, "a", &spread("DoNotSchedule"))), "n1");
    let second = create(&mut play, "b", &spread("DoNotSchedule"));
    let skewed = "2 node(s) didn't match pod topology spread constraints";
    let tainted = "1 node(s) had untolerated taint {gpu: yes}";
    assert_eq!(
        condition(&second, "PodScheduled").2,
        format!("0/3 nodes are available: {tainted}, {skewed}.")
    );
    assert_eq!(node(&create(&mut play, "c", &spread("ScheduleAnyway"))), "n2");
    play.merge("/api/v1/nodes/n3", &json!({"spec": {"taints": null}}));
    play.rest();
    assert_eq!(node(&play.pod("b")), "n3", "the other zone is open now");
}

#[test]
fn a_cordoned_node_takes_nothing_new() {
    let mut play = play();
    play.merge("/api/v1/nodes/n1", &json!({"spec": {"unschedulable": true}}));
    assert_eq!(node(&create(&mut play, "p", &json!({}))), "n2");
    play.merge("/api/v1/nodes/n2", &json!({"spec": {"unschedulable": true}}));
    let why = condition(&create(&mut play, "q", &json!({})), "PodScheduled").2;
    assert!(why.contains("2 node(s) were unschedulable"), "{why}");
}

#[test]
fn a_pod_may_be_pinned_to_a_node_by_name() {
    let pinned = |name: &str| {
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}]}}}})
    };
    let mut play = play();
    assert_eq!(node(&create(&mut play, "a", &pinned("n2"))), "n2");
    assert_eq!(
        node(&create(&mut play, "b", &pinned("n3"))),
        "",
        "it does not tolerate the taint"
    );
    assert_eq!(node(&create(&mut play, "c", &pinned("n4"))), "");
    play.node("n4");
    play.rest();
    assert_eq!(node(&play.pod("c")), "n4");
}

#[test]
fn a_port_of_a_node_is_given_once_until_its_pod_is_gone() {
    let with = |port: &Value| json!({"nodeSelector": {"size": "1"}, "containers": [{"name": "main", "image": "web:1", "ports": [port]}]});
    let taken = "0/3 nodes are available: 1 node(s) didn't have free ports for the requested pod ports, \
                 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated taint {gpu: yes}.";
    let mut play = play();
    let first = json!({"containerPort": 80, "hostPort": 80});
    assert_eq!(node(&create(&mut play, "a", &with(&first))), "n1");
    for (name, port, fits) in [
        ("b", json!({"containerPort": 81, "hostPort": 80}), false),
        (
            "c",
            json!({"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.1"}),
            false,
        ),
        (
            "d",
            json!({"containerPort": 80, "hostPort": 80, "protocol": "UDP"}),
            true,
        ),
        (
            "e",
            json!({"containerPort": 80, "hostPort": 90, "hostIP": "10.0.0.1"}),
            true,
        ),
        (
            "f",
            json!({"containerPort": 80, "hostPort": 90, "hostIP": "10.0.0.2"}),
            true,
        ),
        ("g", json!({"containerPort": 80, "hostPort": 90}), false),
        ("h", json!({"containerPort": 80}), true),
    ] {
        let pod = create(&mut play, name, &with(&port));
        assert_eq!(node(&pod) == "n1", fits, "{port}");
        assert!(
            fits || condition(&pod, "PodScheduled").2 == taken,
            "{}",
            pod["status"]
        );
    }
    let events = play.get("/api/v1/namespaces/default/events").unwrap();
    let events = events["items"].as_array().unwrap().clone();
    let told = |name: &str| {
        let mut all = events.iter();
        all.any(|one| {
            one["reason"] == "FailedScheduling"
                && one["involvedObject"]["name"] == name
                && one["message"] == taken
        })
    };
    assert!(told("b") && !told("a"));
    play.delete(&format!("{PODS}/a"));
    play.rest();
    assert_eq!(node(&play.pod("b")), "n1", "the first that waited has it");
    assert_eq!(node(&play.pod("c")), "");
}

#[test]
fn a_gated_pod_and_one_of_another_scheduler_are_left_alone() {
    let mut play = play();
    let gated = create(&mut play, "gated", &json!({"schedulingGates": [{"name": "x/y"}]}));
    let other = create(&mut play, "other", &json!({"schedulerName": "mine"}));
    assert_eq!((node(&gated), node(&other)), ("", ""));
    play.merge(
        &format!("{PODS}/gated"),
        &json!({"spec": {"schedulingGates": null}}),
    );
    play.rest();
    assert_eq!(node(&play.pod("gated")), "n1");
}

#[test]
fn the_most_important_pod_is_placed_first() {
    let mut play = Play::new(&Options::default());
    let low = create(&mut play, "a-low", &json!({}));
    let class = json!({"metadata": {"name": "high"}, "value": 5});
    play.post("/apis/scheduling.k8s.io/v1/priorityclasses", &class);
    let high = create(&mut play, "z-high", &json!({"priorityClassName": "high"}));
    assert_eq!((node(&low), node(&high)), ("", ""));
    play.post(
        "/api/v1/nodes",
        &json!({"metadata": {"name": "n1"}, "status": {"capacity": {"pods": "1"}}}),
    );
    play.rest();
    assert_eq!((node(&play.pod("a-low")), node(&play.pod("z-high"))), ("", "n1"));
}

/// Asks for another amount of processor for the container of a pod that runs.
fn resize(play: &mut Play, name: &str, amount: &str) {
    let body =
        json!({"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": amount}}}]}});
    play.strategic(&format!("{PODS}/{name}/resize"), &body);
    play.rest();
}

fn on_first(amount: &str) -> Value {
    let mut spec = cpu(amount);
    spec["nodeSelector"] = json!({"size": "1"});
    spec
}

#[test]
fn a_pod_counts_with_its_requests_at_once() {
    let mut play = play();
    create(&mut play, "a", &on_first("1"));
    resize(&mut play, "a", "3");
    assert_eq!(node(&create(&mut play, "b", &on_first("2"))), "");
    resize(&mut play, "a", "2");
    assert_eq!(node(&play.pod("b")), "n1");
}

#[test]
fn a_pod_that_requests_more_than_its_node_can_ever_give_leaves_room_for_others() {
    let mut play = play();
    create(&mut play, "a", &on_first("1"));
    resize(&mut play, "a", "99");
    let pending = condition(&play.pod("a"), "PodResizePending");
    assert_eq!((pending.0.as_str(), pending.1.as_str()), ("True", "Infeasible"));
    assert_eq!(node(&create(&mut play, "b", &on_first("3"))), "n1");
    assert_eq!(
        node(&create(&mut play, "c", &on_first("1"))),
        "",
        "what it has counts"
    );
}

#[test]
fn of_the_nodes_that_fit_the_one_is_taken_that_the_pod_prefers_most() {
    let term = |weight: i64, key: &str, value: &str| {
        json!({"weight": weight, "preference":
            {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}})
    };
    let field = json!({"weight": 7, "preference":
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}});
    let all = json!({"weight": 9, "preference": {}});
    let cases = [
        (json!([]), "n1"),
        (json!([term(1, "size", "2")]), "n2"),
        // weights add up: 6 against 5
        (
            json!([term(5, "size", "1"), term(4, "zone", "a"), term(6, "size", "2")]),
            "n2",
        ),
        (json!([term(8, "size", "1"), field]), "n1"),
        (json!([field, term(6, "size", "1")]), "n2"),
        // the preferred one refuses it, and so the others are as good
        (json!([term(100, "zone", "b")]), "n1"),
        (json!([all, term(1, "size", "2")]), "n2"),
    ];
    for (preferred, expected) in cases {
        let spec = json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}});
        assert_eq!(node(&create(&mut play(), "p", &spec)), expected, "{preferred}");
    }
}

#[test]
fn what_a_pod_prefers_comes_before_how_full_nodes_are_but_not_before_what_they_have() {
    let mut play = play();
    let preferred = json!([{"weight": 1, "preference":
        {"matchExpressions": [{"key": "size", "operator": "In", "values": ["2"]}]}}]);
    let mut spec = cpu("2");
    spec["affinity"] =
        json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}});
    let nodes = ["p1", "p2", "p3"].map(|name| node(&create(&mut play, name, &spec)).to_owned());
    assert_eq!(nodes, ["n2", "n2", "n1"]);
}

#[test]
fn pods_of_a_zone_that_fails_wait_since_then_and_start_when_it_is_back() {
    let mut play = play();
    let in_a = json!({"nodeSelector": {"zone": "a"}});
    for name in ["p1", "p2"] {
        create(&mut play, name, &in_a);
    }
    let taint = |play: &mut Play, taints: Value| {
        for name in ["n1", "n2"] {
            play.merge(
                &format!("/api/v1/nodes/{name}"),
                &json!({"spec": {"taints": taints}}),
            );
        }
        play.rest();
    };
    taint(
        &mut play,
        json!([{"key": "zone", "value": "failed", "effect": "NoExecute"}]),
    );
    for name in ["p1", "p2"] {
        assert_eq!(play.get(&format!("{PODS}/{name}")), None, "{name} has left");
    }
    let waits = create(&mut play, "p3", &in_a);
    let message = "0/3 nodes are available: 1 node(s) had untolerated taint {gpu: yes}, 2 node(s) had untolerated taint \
                   {zone: failed}.";
    let [status, reason] = ["False", "Unschedulable"].map(String::from);
    assert_eq!(
        condition(&waits, "PodScheduled"),
        (status, reason, message.to_owned())
    );
    // The reason changes, and the pod has waited since it was created.
    play.pass(Duration::from_mins(1));
    taint(
        &mut play,
        json!([{"key": "zone", "value": "slow", "effect": "NoSchedule"}]),
    );
    let still_waits = play.pod("p3");
    let (_, _, message) = condition(&still_waits, "PodScheduled");
    assert!(message.contains("{zone: slow}"), "{message}");
    assert_eq!(waiting_since(&still_waits), waiting_since(&waits));
    assert_eq!(waiting_since(&waits), waits["metadata"]["creationTimestamp"]);
    taint(&mut play, json!([]));
    assert!(is_ready(&play.pod("p3")));
}

/// Since when a pod has no node.
fn waiting_since(pod: &Value) -> Value {
    let conditions = pod["status"]["conditions"].as_array().unwrap();
    let mut of_scheduler = conditions.iter().filter(|one| one["type"] == "PodScheduled");
    of_scheduler.next().unwrap()["lastTransitionTime"].clone()
}
