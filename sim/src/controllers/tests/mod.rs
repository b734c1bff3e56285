//! The controllers at work.

mod claims;
mod jobs;
mod nodes;
mod stateful_set;

use std::time::Duration;

use serde_json::{Value, json};

use crate::nodes::Options;
use crate::wire::{Method, Request};
use crate::world::tests::{PODS, Play, condition, is_ready};

const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";

fn play() -> Play {
    let mut play = Play::new(&Options::default());
    play.node("n1");
    play.node("n2");
    play.rest();
    play
}

fn workload(kind: &str, replicas: i64, more: &Value) -> Value {
    let mut spec = json!({"replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "web:1"}]}}});
    spec.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": spec})
}

fn pods(play: &mut Play) -> Vec<Value> {
    play.get(PODS).unwrap()["items"].as_array().unwrap().clone()
}

fn images(play: &mut Play) -> Vec<String> {
    let pods = pods(play);
    pods.iter()
        .map(|pod| pod["spec"]["containers"][0]["image"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_replica_set_keeps_its_size() {
    let mut play = play();
    play.post(SETS, &workload("ReplicaSet", 3, &json!({"minReadySeconds": 30})));
    play.pass(Duration::from_secs(10));
    let counts = |play: &mut Play| {
        let set = play.get(&format!("{SETS}/web")).unwrap();
        ["replicas", "readyReplicas", "availableReplicas"]
            .map(|name| set["status"][name].as_i64().unwrap_or(0))
    };
    assert_eq!(counts(&mut play), [3, 3, 0]);
    play.rest();
    assert_eq!(counts(&mut play), [3, 3, 3], "available after thirty seconds");
    let first = pods(&mut play)[0]["metadata"]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    play.delete(&format!("{PODS}/{first}"));
    play.rest();
    assert_eq!(counts(&mut play), [3, 3, 3]);
    assert!(
        pods(&mut play)
            .iter()
            .all(|pod| pod["metadata"]["name"] != first.as_str() && is_ready(pod))
    );
    let oldest = pods(&mut play)
        .into_iter()
        .map(|pod| pod["metadata"]["creationTimestamp"].to_string())
        .min();
    play.merge(&format!("{SETS}/web"), &json!({"spec": {"replicas": 1}}));
    play.rest();
    let left = pods(&mut play);
    assert_eq!(left.len(), 1);
    assert_eq!(
        Some(left[0]["metadata"]["creationTimestamp"].to_string()),
        oldest,
        "the longest ready stays"
    );
    play.delete(&format!("{SETS}/web"));
    play.rest();
    assert_eq!(pods(&mut play).len(), 0);
}

#[test]
fn a_pod_that_leaves_the_selector_of_its_replica_set_is_released_and_another_is_created() {
    let mut play = play();
    play.post(SETS, &workload("ReplicaSet", 2, &json!({})));
    play.rest();
    let name = pods(&mut play)[0]["metadata"]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    let mine = json!({"metadata": {"labels": {"app": "mine"}}});
    play.merge(&format!("{PODS}/{name}"), &mine);
    play.rest();
    let (left, kept): (Vec<Value>, Vec<Value>) = pods(&mut play)
        .into_iter()
        .partition(|pod| pod["metadata"]["labels"]["app"] == "mine");
    assert_eq!((left.len(), kept.len()), (1, 2));
    assert_eq!(left[0]["metadata"].get("ownerReferences"), None, "{}", left[0]);
    assert!(is_ready(&left[0]) && kept.iter().all(is_ready));
    let set = play.get(&format!("{SETS}/web")).unwrap();
    assert_eq!(set["status"]["readyReplicas"], 2);
    play.delete(&format!("{SETS}/web"));
    play.rest();
    assert_eq!(pods(&mut play).len(), 1, "what was let go stays");
}

#[test]
fn a_deployment_rolls_within_its_bounds() {
    let mut play = play();
    let bounds = json!({"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}});
    play.post(DEPLOYMENTS, &workload("Deployment", 4, &bounds));
    play.rest();
    assert_eq!(images(&mut play), ["web:1"; 4]);
    let change =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "web:2"}]}}}});
    play.merge(&format!("{DEPLOYMENTS}/web"), &change);
    while let Some(due) = play.0.next_due() {
        play.0.advance(due);
        let pods = pods(&mut play);
        let living: Vec<&Value> = pods
            .iter()
            .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null())
            .collect();
        assert!(living.len() <= 5, "{}", living.len());
        assert!(living.iter().filter(|pod| is_ready(pod)).count() >= 3);
    }
    assert_eq!(images(&mut play), ["web:2"; 4]);
    let deployment = play.get(&format!("{DEPLOYMENTS}/web")).unwrap();
    assert_eq!(
        deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
        "2"
    );
    assert_eq!(deployment["status"]["updatedReplicas"], 4);
    assert_eq!(condition(&deployment, "Available").0, "True");
    assert_eq!(condition(&deployment, "Progressing").1, "NewReplicaSetAvailable");
    let sets = play.get(SETS).unwrap();
    assert_eq!(sets["items"].as_array().unwrap().len(), 2);
    // back: the first set is used again, under a new revision
    let back = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "web:1"}]}}}});
    play.merge(&format!("{DEPLOYMENTS}/web"), &back);
    play.rest();
    assert_eq!(images(&mut play), ["web:1"; 4]);
    assert_eq!(play.get(SETS).unwrap()["items"].as_array().unwrap().len(), 2);
    let deployment = play.get(&format!("{DEPLOYMENTS}/web")).unwrap();
    assert_eq!(
        deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
        "3"
    );
}

#[test]
fn pods_that_serve_outlive_a_rollout_that_is_stuck() {
    let mut play = play();
    let bounds = json!({"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}});
    play.post(DEPLOYMENTS, &workload("Deployment", 4, &bounds));
    play.rest();
    let template = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
    let stuck = json!({"readinessGates": [{"conditionType": "x/never"}]});
    play.merge(&format!("{DEPLOYMENTS}/web"), &template(stuck));
    play.rest();
    let ready = |play: &mut Play| pods(play).iter().filter(|pod| is_ready(pod)).count();
    assert_eq!((pods(&mut play).len(), ready(&mut play)), (5, 3));
    let corrected = json!({"readinessGates": null, "containers": [{"name": "main", "image": "web:3"}]});
    play.merge(&format!("{DEPLOYMENTS}/web"), &template(corrected));
    while let Some(due) = play.0.next_due() {
        play.0.advance(due);
        assert!(ready(&mut play) >= 3);
    }
    assert_eq!(images(&mut play), ["web:3"; 4]);
}

#[test]
fn recreation_waits_until_the_old_pods_are_gone() {
    let mut play = play();
    let recreate = json!({"strategy": {"type": "Recreate"}});
    play.post(DEPLOYMENTS, &workload("Deployment", 3, &recreate));
    play.rest();
    let change =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "web:2"}]}}}});
    play.merge(&format!("{DEPLOYMENTS}/web"), &change);
    while let Some(due) = play.0.next_due() {
        play.0.advance(due);
        let images = images(&mut play);
        assert!(images.iter().all(|image| *image == images[0]), "{images:?}");
    }
    assert_eq!(images(&mut play), ["web:2"; 3]);
}

#[test]
fn a_claim_gets_its_own_volume_and_stays_while_it_is_used() {
    let mut play = play();
    let claim = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    play.post(CLAIMS, &claim);
    play.rest();
    let claim = play.get(&format!("{CLAIMS}/data")).unwrap();
    assert_eq!(claim["status"]["phase"], "Bound");
    assert_eq!(claim["status"]["capacity"]["storage"], "1Gi");
    let volume = format!(
        "/api/v1/persistentvolumes/{}",
        claim["spec"]["volumeName"].as_str().unwrap()
    );
    let bound = play.get(&volume).unwrap();
    assert_eq!(
        (&bound["status"]["phase"], &bound["spec"]["claimRef"]["name"]),
        (&json!("Bound"), &json!("data"))
    );
    let user = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main", "image": "web:1"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}});
    play.post(PODS, &user);
    play.rest();
    play.delete(&format!("{CLAIMS}/data"));
    play.rest();
    assert!(play.get(&format!("{CLAIMS}/data")).is_some(), "the pod uses it");
    play.delete(&format!("{PODS}/p"));
    play.rest();
    assert_eq!(play.get(&format!("{CLAIMS}/data")), None);
    assert_eq!(play.get(&volume), None);
}

#[test]
fn a_pod_without_a_node_keeps_no_claim_that_is_deleted() {
    let mut play = play();
    let claim = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    play.post(CLAIMS, &claim);
    let user = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main", "image": "web:1"}],
        "nodeSelector": {"is": "nowhere"},
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}});
    play.post(PODS, &user);
    play.rest();
    play.delete(&format!("{CLAIMS}/data"));
    play.rest();
    assert_eq!(play.get(&format!("{CLAIMS}/data")), None);
    assert!(play.get(&format!("{PODS}/p")).is_some());
}

const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

fn budget(play: &mut Play) -> [i64; 4] {
    let budget = play.get(&format!("{BUDGETS}/b")).unwrap();
    [
        "expectedPods",
        "currentHealthy",
        "desiredHealthy",
        "disruptionsAllowed",
    ]
    .map(|name| budget["status"][name].as_i64().unwrap())
}

#[test]
fn a_budget_is_counted_and_an_eviction_spends_it() {
    for (bound, counts) in [
        (json!({"minAvailable": 2}), [3, 3, 2, 1]),
        (json!({"minAvailable": "50%"}), [3, 3, 2, 1]),
        (json!({"maxUnavailable": 2}), [3, 3, 1, 2]),
        (json!({"maxUnavailable": "34%"}), [3, 3, 1, 2]),
    ] {
        let mut play = play();
        play.post(DEPLOYMENTS, &workload("Deployment", 3, &json!({})));
        let mut spec = json!({"selector": {"matchLabels": {"app": "web"}}});
        spec.as_object_mut()
            .unwrap()
            .extend(bound.as_object().unwrap().clone());
        play.post(BUDGETS, &json!({"metadata": {"name": "b"}, "spec": spec}));
        play.rest();
        assert_eq!(budget(&mut play), counts, "{bound}");
        let name = pods(&mut play)[0]["metadata"]["name"]
            .as_str()
            .unwrap()
            .to_owned();
        let eviction = json!({"metadata": {"name": name}});
        play.post(&format!("{PODS}/{name}/eviction"), &eviction);
        play.pass(Duration::from_millis(1));
        assert_eq!(budget(&mut play)[3], counts[3] - 1, "{bound}");
        play.rest();
        assert_eq!(budget(&mut play), counts, "{bound}: another pod took its place");
        let spent = play.get(&format!("{BUDGETS}/b")).unwrap();
        assert_eq!(spent["status"].get("disruptedPods"), None, "{bound}");
    }
}

#[test]
fn an_unhealthy_pod_may_always_be_evicted_if_its_budget_allows_it() {
    for (policy, stays) in [("AlwaysAllow", false), ("IfHealthyBudget", true)] {
        let mut play = play();
        play.post(PODS, &crate::world::tests::pod("a"));
        let spec = json!({"selector": {}, "minAvailable": 2, "unhealthyPodEvictionPolicy": policy});
        play.post(BUDGETS, &json!({"metadata": {"name": "b"}, "spec": spec}));
        play.rest();
        let sick = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
        play.strategic(&format!("{PODS}/a/status"), &sick);
        let eviction = json!({"metadata": {"name": "a"}});
        let request = Request::new(Method::Post, &format!("{PODS}/a/eviction"), Some(&eviction));
        let answer = play.0.handle(&request).response().unwrap();
        let expected = if stays { 429 } else { 201 };
        assert_eq!(answer.code, expected, "{policy}: {}", answer.value());
    }
}

#[test]
fn the_largest_counts_can_be_budgeted() {
    let mut play = play();
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let names = json!({"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let spec = json!({"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]});
    play.post(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        &json!({"metadata": {"name": "things.example.com"}, "spec": spec}),
    );
    for name in ["a", "b"] {
        let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name},
            "spec": {"replicas": i64::MAX}});
        let thing = play.post("/apis/example.com/v1/namespaces/default/things", &thing);
        let mut pod = crate::world::tests::pod(name);
        pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "example.com/v1", "kind": "Thing",
            "name": name, "uid": thing["metadata"]["uid"], "controller": true}]);
        play.post(PODS, &pod);
    }
    let spec = json!({"selector": {}, "minAvailable": "100%"});
    play.post(BUDGETS, &json!({"metadata": {"name": "b"}, "spec": spec}));
    play.rest();
    let most = i64::from(i32::MAX);
    assert_eq!(budget(&mut play), [most, 2, most, 0]);
}
