//! StatefulSets in a playground: what happens to pods and claims that are not a set's own, or not any more, without an
//! edit of the set; and what `kruise explain` says.

use serde_json::{Value, json};

use crate::process::{Playground, Scratch, text};

const SETS: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/statefulsets";
const PODS: &str = "/api/v1/namespaces/default/pods";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";

fn set(name: &str, replicas: u32) -> Value {
    json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "metadata": {"name": name}, "spec": {
        "replicas": replicas, "podManagementPolicy": "Parallel", "selector": {"matchLabels": {"app": name}},
        "updateStrategy": {"type": "OnDelete"},
        "template": {"metadata": {"labels": {"app": name}},
                     "spec": {"containers": [{"name": "main", "image": "db:1"}]}}}})
}

fn send(playground: &Playground, verb: &str, path: &str, kind: &str, body: &Value) -> Value {
    let (code, answer) = playground.request(verb, path, kind, &body.to_string());
    assert!((200..300).contains(&code), "{verb} {path}: {answer}");
    answer
}

/// Name and uid of the pods that the set controls and that are ready, if there are `count`.
fn ready(playground: &Playground, set: &str, count: usize) -> Option<Vec<(String, String)>> {
    let list = playground.get(PODS);
    let pods = list["items"].as_array().unwrap().iter().filter(|pod| {
        let owner = &pod["metadata"]["ownerReferences"][0];
        let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        let is_ready = conditions.any(|one| one["type"] == "Ready" && one["status"] == "True");
        is_ready && owner["kind"] == "StatefulSet" && owner["name"] == set
    });
    let pods: Vec<_> = pods
        .map(|pod| {
            let text = |member: &str| pod["metadata"][member].as_str().unwrap().to_owned();
            (text("name"), text("uid"))
        })
        .collect();
    (pods.len() == count).then_some(pods)
}

#[test]
fn a_pod_in_the_way_is_waited_for_and_adopted_once_it_matches() {
    let scratch = Scratch::new("foreign-pod");
    let playground = Playground::start(&scratch, &["--fast"]);
    let foreign = |name: &str| {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "else"}},
                         "spec": {"containers": [{"name": "main", "image": "db:1"}]}});
        let stored = send(&playground, "POST", PODS, JSON, &pod);
        stored["metadata"]["uid"].as_str().unwrap().to_owned()
    };
    let (adopted, _in_the_way) = (foreign("db-1"), foreign("db-2"));
    send(&playground, "POST", SETS, JSON, &set("db", 4));
    playground.until("the others are ready", |playground| ready(playground, "db", 2));

    let kubeconfig = ["--kubeconfig", text(&playground.kubeconfig)];
    let output = scratch.output(&[&["explain", "sts/db", "db-2"][..], &kubeconfig].concat());
    let explained = String::from_utf8(output.stdout).unwrap();
    assert!(explained.contains("StatefulSet default/db"), "{explained}");
    assert!(explained.contains("pods/db-2: "), "{explained}");
    assert!(!explained.contains("db-3"), "{explained}");

    // Nothing but the pods changes from here on.
    let labels = json!({"metadata": {"labels": {"app": "db"}}});
    send(&playground, "PATCH", &format!("{PODS}/db-1"), MERGE, &labels);
    let pods = playground.until("it is adopted", |playground| ready(playground, "db", 3));
    assert!(pods.contains(&("db-1".to_owned(), adopted)), "{pods:?}");
    send(&playground, "DELETE", &format!("{PODS}/db-2"), JSON, &json!({}));
    playground.until("its successor is ready", |playground| ready(playground, "db", 4));
    assert_eq!(playground.end("INT"), Some(0));
}

#[test]
fn pods_wait_for_claims_that_are_being_deleted_and_get_new_ones() {
    let scratch = Scratch::new("claims-go");
    let playground = Playground::start(&scratch, &["--fast"]);
    let mut set = set("db", 2);
    set["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] =
        json!([{"name": "data", "mountPath": "/data"}]);
    set["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]);
    set["spec"]["persistentVolumeClaimRetentionPolicy"] =
        json!({"whenScaled": "Delete", "whenDeleted": "Retain"});
    send(&playground, "POST", SETS, JSON, &set);
    playground.until("both are ready", |playground| ready(playground, "db", 2));
    let claim = |name: &str| {
        let claims = playground.get(CLAIMS);
        let mut claims = claims["items"].as_array().unwrap().iter();
        let claim = claims.find(|claim| claim["metadata"]["name"] == name);
        claim.map(|claim| claim["metadata"]["uid"].clone())
    };
    let before = [claim("data-db-0"), claim("data-db-1")];
    assert!(before.iter().all(Option::is_some), "{before:?}");
    for replicas in [1, 2] {
        let patch = json!({"spec": {"replicas": replicas}});
        send(&playground, "PATCH", &format!("{SETS}/db"), MERGE, &patch);
        // Whether the pod is gone, or still going, when it is wanted again must not matter.
        playground.until("the set has seen it", |playground| {
            let set = playground.get(&format!("{SETS}/db"));
            (set["status"]["observedGeneration"] == set["metadata"]["generation"]).then_some(())
        });
    }
    playground.until("the second is ready with a new claim", |playground| {
        ready(playground, "db", 2).filter(|_| claim("data-db-1").is_some_and(|uid| Some(uid) != before[1]))
    });
    assert_eq!(claim("data-db-0"), before[0]);
    assert_eq!(playground.end("INT"), Some(0));
}
