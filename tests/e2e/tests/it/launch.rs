//! The order in which containers start: what pods are given, and when their keys open.
//!
//! No node takes the pods of most tests here: the test writes what a kubelet would report of their containers, so that
//! each step is seen however fast or slow the machine is.

use kruise_e2e::audit::{Entry, MANAGER};
use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::wait;
use kruise_e2e::watch::Watch;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, scenario, text};

/// Of barriers alone.
const LABEL: &str = "apps.kruise.io/container-launch-barrier=true";
const COMPLETED: &str = "/metadata/annotations/apps.kruise.io~1container-launch-priority-completed";

/// A pod that no node takes, whose containers start as they are listed.
fn ordered(name: &str, containers: &[&str]) -> Value {
    let containers = containers
        .iter()
        .map(|name| json!({"name": name, "image": "nginx:1"}));
    let mut pod = unplaced(name, containers.collect());
    pod["metadata"]["annotations"] = json!({"apps.kruise.io/container-launch-priority": "Ordered"});
    pod
}

fn unplaced(name: &str, containers: Vec<Value>) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"nodeSelector": {"kubernetes.io/hostname": "nowhere"}, "containers": containers},
    })
}

fn numbered(name: &str, number: &str) -> Value {
    json!({"name": name, "image": "nginx:1", "env": [{"name": "KRUISE_CONTAINER_PRIORITY", "value": number}]})
}

/// Says as a kubelet would that these containers are ready, and no other.
fn say_ready(kubectl: &Kubectl, pod: &str, containers: &[&str]) {
    let statuses = containers.iter().map(
        |name| json!({"name": name, "image": "nginx:1", "imageID": "", "ready": true, "restartCount": 0}),
    );
    let patch = json!({"status": {"containerStatuses": statuses.collect::<Vec<_>>()}});
    kubectl.patch_status("pod", pod, &patch).unwrap();
}

fn keys(barrier: &Value) -> Vec<String> {
    let data = barrier["data"].as_object().into_iter().flatten();
    let mut keys: Vec<String> = data.map(|(key, _)| key.clone()).collect();
    keys.sort();
    keys
}

/// The barrier of a pod, once it is the pod's and has these keys.
fn until_open(kubectl: &Kubectl, pod: &str, wanted: &[&str]) -> Value {
    let owner = kubectl.get("pods", pod).unwrap()["metadata"]["uid"].clone();
    wait::until(&format!("the barrier of {pod} has {wanted:?}"), LIMIT, || {
        let barriers = kubectl.list("configmaps", LABEL)?;
        let mut own = barriers.into_iter().filter(|barrier| {
            barrier["metadata"]["name"] == format!("{pod}-barrier")
                && barrier["metadata"]["ownerReferences"][0]["uid"] == owner
        });
        Ok(own.find(|barrier| keys(barrier) == wanted))
    })
    .unwrap()
}

fn until_completed(kubectl: &Kubectl, pod: &str) {
    wait::until_true("the pod is complete", LIMIT, || {
        Ok(text(&kubectl.get("pods", pod)?, COMPLETED) == "true")
    })
    .unwrap();
}

/// The key that each container of a pod waits for, with the name of its barrier.
fn waits_for(pod: &Value) -> Vec<String> {
    let containers = pod["spec"]["containers"].as_array().unwrap().iter();
    let key = |container: &Value| {
        let env = container["env"].as_array().cloned().unwrap_or_default();
        let barrier = env
            .iter()
            .find(|variable| variable["name"] == "KRUISE_CONTAINER_BARRIER");
        barrier.map_or(String::new(), |barrier| {
            let key = &barrier["valueFrom"]["configMapKeyRef"];
            format!("{}/{}", text(key, "/name"), text(key, "/key"))
        })
    };
    containers.map(key).collect()
}

/// A life of a pod whose two containers start one after the other: all that needs rights.
pub(crate) fn live(kubectl: &Kubectl) {
    kubectl.create(&ordered("ordered", &["a", "b"])).unwrap();
    until_open(kubectl, "ordered", &["p_0"]);
    say_ready(kubectl, "ordered", &["a"]);
    until_open(kubectl, "ordered", &["p_-1", "p_0"]);
    until_completed(kubectl, "ordered");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn keys_are_added_one_after_the_other_with_one_write_each_and_deleted_with_their_pod() {
    let scenario = scenario("launch-order");
    let kubectl = &scenario.kubectl;
    let mut log = scenario.audit_log();
    let watch = Watch::start(kubectl, "configmaps", LABEL).unwrap();
    let pod = kubectl.create(&ordered("web", &["a", "b", "c"])).unwrap();
    assert_eq!(
        waits_for(&pod),
        ["web-barrier/p_0", "web-barrier/p_-1", "web-barrier/p_-2"]
    );

    let first = until_open(kubectl, "web", &["p_0"]);
    // From here on the watch is known to look: it misses no write.
    watch.until_shown(1, LIMIT).unwrap();
    assert_eq!(
        first["metadata"]["ownerReferences"],
        json!([{"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": pod["metadata"]["uid"]}])
    );
    say_ready(kubectl, "web", &["a"]);
    until_open(kubectl, "web", &["p_-1", "p_0"]);
    say_ready(kubectl, "web", &["a", "b"]);
    let last = until_open(kubectl, "web", &["p_-1", "p_-2", "p_0"]);
    assert_eq!(last["metadata"]["uid"], first["metadata"]["uid"]);
    until_completed(kubectl, "web");

    wait::until_true("the watch shows the last key", LIMIT, || {
        Ok(watch
            .shown()
            .last()
            .is_some_and(|event| keys(&event["object"]).len() == 3))
    })
    .unwrap();
    let events = watch.stop().unwrap();
    let seen: Vec<Vec<String>> = events.iter().map(|event| keys(&event["object"])).collect();
    let counts: Vec<usize> = seen.iter().map(Vec::len).collect();
    assert_eq!(counts, [1, 2, 3], "{seen:?}");
    let requests = wait::until("the log has the last write", LIMIT, {
        let mut requests: Vec<Entry> = Vec::new();
        move || {
            requests.extend(log.read_new(MANAGER)?);
            let is_last = |entry: &Entry| entry.resource == "pods" && entry.verb == "patch";
            Ok(requests.iter().any(is_last).then(|| requests.clone()))
        }
    })
    .unwrap();
    let writes: Vec<String> = requests
        .iter()
        .filter(|entry| entry.is_write() && entry.code < 300)
        .filter(|entry| entry.resource == "configmaps" || entry.resource.starts_with("pods"))
        .map(|entry| format!("{} {}", entry.verb, entry.resource))
        .collect();
    assert_eq!(
        writes,
        [
            "create configmaps",
            "patch configmaps",
            "patch configmaps",
            "patch pods"
        ]
    );

    kubectl
        .run(&["delete", "pod", "web", "--grace-period=0", "--force"])
        .unwrap();
    wait::until_true("the barrier goes with its pod", LIMIT, || {
        Ok(kubectl.list("configmaps", LABEL)?.is_empty())
    })
    .unwrap();
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_barrier_that_is_deleted_or_loses_its_label_comes_back() {
    let scenario = scenario("launch-lost");
    let kubectl = &scenario.kubectl;
    kubectl
        .create(&unplaced(
            "web",
            vec![
                numbered("main", "0"),
                numbered("proxy", "10"),
                numbered("log", "-3"),
            ],
        ))
        .unwrap();
    let first = until_open(kubectl, "web", &["p_10"]);
    say_ready(kubectl, "web", &["proxy"]);
    until_open(kubectl, "web", &["p_0", "p_10"]);

    kubectl.run(&["delete", "configmap", "web-barrier"]).unwrap();
    let second = until_open(kubectl, "web", &["p_0", "p_10"]);
    assert_ne!(second["metadata"]["uid"], first["metadata"]["uid"]);
    // As OpenKruise writes them.
    let label = "apps.kruise.io/container-launch-barrier-";
    kubectl
        .run(&["label", "configmap", "web-barrier", label])
        .unwrap();
    let third = until_open(kubectl, "web", &["p_0", "p_10"]);
    assert_eq!(third["metadata"]["uid"], second["metadata"]["uid"]);
    say_ready(kubectl, "web", &["proxy", "main"]);
    until_open(kubectl, "web", &["p_-3", "p_0", "p_10"]);
    until_completed(kubectl, "web");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_barrier_of_another_pod_is_replaced_and_a_map_that_is_none_is_left_alone() {
    let scenario = scenario("launch-foreign");
    let kubectl = &scenario.kubectl;
    // Somebody lives on, so that nobody but the manager removes what is his.
    let other = kubectl
        .create(&unplaced("other", vec![json!({"name": "a", "image": "nginx:1"})]))
        .unwrap();
    let map = |name: &str, labels: Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels, "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "other", "uid": other["metadata"]["uid"]},
        ]}, "data": {"p_0": "true", "p_-1": "true"}})
    };
    let labels = json!({"apps.kruise.io/container-launch-barrier": "true"});
    let stale = kubectl.create(&map("web-barrier", labels)).unwrap();
    kubectl.create(&ordered("web", &["a", "b"])).unwrap();
    let fresh = until_open(kubectl, "web", &["p_0"]);
    assert_ne!(fresh["metadata"]["uid"], stale["metadata"]["uid"]);

    let settings = kubectl.create(&map("db-barrier", json!({}))).unwrap();
    kubectl.create(&ordered("db", &["a", "b"])).unwrap();
    wait::until_true("the pod says what it waits for", LIMIT, || {
        let events = kubectl.list("events", "")?;
        Ok(events
            .iter()
            .any(|event| event["reason"] == "FailedLaunch" && event["involvedObject"]["name"] == "db"))
    })
    .unwrap();
    let now = kubectl.get("configmaps", "db-barrier").unwrap();
    assert_eq!(
        now["metadata"]["resourceVersion"],
        settings["metadata"]["resourceVersion"]
    );
    kubectl.run(&["delete", "configmap", "db-barrier"]).unwrap();
    until_open(kubectl, "db", &["p_0"]);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn numbers_that_cannot_be_read_are_refused_and_pods_without_an_order_stay_as_they_are() {
    let scenario = scenario("launch-admission");
    let kubectl = &scenario.kubectl;
    let bad = unplaced("bad", vec![numbered("a", "x"), numbered("b", "1")]);
    let refused = kubectl.refused(&["create", "-f", "-"], &bad.to_string()).unwrap();
    assert!(refused.contains("KRUISE_CONTAINER_PRIORITY"), "{refused}");
    for (name, containers) in [
        ("alone", vec![numbered("a", "x")]),
        ("equal", vec![numbered("a", "5"), numbered("b", "5")]),
        (
            "none",
            vec![
                json!({"name": "a", "image": "nginx:1"}),
                json!({"name": "b", "image": "nginx:1"}),
            ],
        ),
    ] {
        let pod = kubectl.create(&unplaced(name, containers)).unwrap();
        assert!(waits_for(&pod).iter().all(String::is_empty), "{pod}");
    }
    let mut nameless = ordered("", &["a", "b"]);
    nameless["metadata"]["generateName"] = json!("web-");
    nameless["metadata"].as_object_mut().unwrap().remove("name");
    let pod = kubectl.create(&nameless).unwrap();
    let name = text(&pod, "/metadata/name");
    assert!(name.starts_with("web-") && name.len() == 9, "{name}");
    assert_eq!(
        waits_for(&pod),
        [format!("{name}-barrier/p_0"), format!("{name}-barrier/p_-1")]
    );
    until_open(kubectl, &name, &["p_0"]);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn pods_of_a_set_come_up_on_nodes_with_all_their_keys() {
    let scenario = scenario("launch-set");
    let mut set = crate::cluster::web(3);
    set["spec"]["template"]["spec"]["containers"] = json!([
        numbered("main", "0"),
        numbered("proxy", "10"),
        numbered("log", "-3")
    ]);
    scenario.kubectl.apply(&set).unwrap();
    scenario.until_status(&json!({"readyReplicas": 3}));
    for pod in scenario.pods() {
        let name = text(&pod, "/metadata/name");
        until_open(&scenario.kubectl, &name, &["p_-3", "p_0", "p_10"]);
        until_completed(&scenario.kubectl, &name);
    }
}
