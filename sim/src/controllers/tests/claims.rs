//! Claims of storage classes.

use std::time::Duration;

use serde_json::{Value, json};

use super::{CLAIMS, play, workload};
use crate::webhook::WebhookReply;
use crate::wire::{Method, Request};
use crate::world::tests::{PODS, Play, condition, pod};

const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
const VOLUMES: &str = "/api/v1/persistentvolumes";

fn class(play: &mut Play, name: &str, more: &Value) {
    let mut class = json!({"metadata": {"name": name}, "provisioner": "disk.example.com"});
    class
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    play.post(CLASSES, &class);
}

fn new_claim(name: &str, class: Option<&str>) -> Value {
    json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class,
        "resources": {"requests": {"storage": "1Gi"}}}})
}

fn claim(play: &mut Play, name: &str) -> Value {
    play.get(&format!("{CLAIMS}/{name}")).unwrap()
}

/// Phase, class and capacity.
fn shown(play: &mut Play, name: &str) -> [String; 3] {
    let claim = claim(play, name);
    [
        "/status/phase",
        "/spec/storageClassName",
        "/status/capacity/storage",
    ]
    .map(|pointer| {
        let value = claim.pointer(pointer).and_then(Value::as_str);
        value.unwrap_or("-").to_owned()
    })
}

fn user(name: &str, claim: &str) -> Value {
    let mut pod = pod(name);
    pod["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]);
    pod
}

/// Reasons and messages of the events about an object.
fn events(play: &mut Play, name: &str) -> Vec<String> {
    let list = play.get("/api/v1/namespaces/default/events").unwrap();
    let about = list["items"].as_array().unwrap().iter();
    let about = about.filter(|one| one["involvedObject"]["name"] == name);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    about
        .map(|one| format!("{}: {}", text(&one["reason"]), text(&one["message"])))
        .collect()
}

/// What kubectl prints of an object.
fn row(play: &mut Play, path: &str, index: usize) -> Value {
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    play.send(&Request::new(Method::Get, path, None).accept(table))["rows"][index]["cells"].clone()
}

fn refused(play: &mut Play, path: &str, body: &Value) -> (u16, String) {
    let request = Request::new(Method::Patch, path, Some(body));
    let request = request.content_type("application/merge-patch+json");
    let answer = play.0.handle(&request).response().unwrap();
    (
        answer.code,
        answer.value()["message"].as_str().unwrap().to_owned(),
    )
}

fn sized(storage: &str) -> Value {
    json!({"spec": {"resources": {"requests": {"storage": storage}}}})
}

/// The conditions of a claim and its capacity.
fn growth(play: &mut Play, name: &str) -> String {
    let claim = claim(play, name);
    let conditions = claim["status"]["conditions"].as_array();
    let kinds: Vec<&str> = conditions
        .into_iter()
        .flatten()
        .map(|one| one["type"].as_str().unwrap())
        .collect();
    let capacity = claim["status"]["capacity"]["storage"].as_str().unwrap();
    format!("{capacity} {}", kinds.join(" "))
}

#[test]
fn a_class_binds_its_claims_a_moment_after_they_are_made() {
    let mut play = play();
    class(&mut play, "disk", &json!({"reclaimPolicy": "Retain"}));
    play.post(CLAIMS, &new_claim("data", Some("disk")));
    play.pass(Duration::from_millis(900));
    assert_eq!(shown(&mut play, "data"), ["Pending", "disk", "-"]);
    play.post(PODS, &user("p", "data"));
    play.pass(Duration::ZERO);
    let waits = condition(&play.pod("p"), "PodScheduled").2;
    assert_eq!(
        waits,
        "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    );
    play.rest();
    assert_eq!(shown(&mut play, "data"), ["Bound", "disk", "1Gi"]);
    assert_eq!(condition(&play.pod("p"), "Ready").0, "True");
    let name = claim(&mut play, "data")["spec"]["volumeName"].clone();
    let path = format!("{VOLUMES}/{}", name.as_str().unwrap());
    let volume = play.get(&path).unwrap();
    assert_eq!(volume["spec"]["csi"]["driver"], "disk.example.com");
    let cells = row(&mut play, VOLUMES, 0);
    assert_eq!(
        json!(cells.as_array().unwrap()[1..7]),
        json!(["1Gi", "RWO", "Retain", "Bound", "default/data", "disk"])
    );
    play.delete(&format!("{PODS}/p"));
    play.delete(&format!("{CLAIMS}/data"));
    play.rest();
    assert_eq!(
        play.get(&path).unwrap()["status"]["phase"],
        "Released",
        "it is retained"
    );
}

#[test]
fn a_claim_that_waits_for_its_first_consumer_is_bound_for_the_node_of_its_pod() {
    let mut play = play();
    class(
        &mut play,
        "late",
        &json!({"volumeBindingMode": "WaitForFirstConsumer"}),
    );
    for name in ["a", "b"] {
        play.post(CLAIMS, &new_claim(name, Some("late")));
    }
    play.rest();
    assert_eq!(shown(&mut play, "a")[0], "Pending");
    assert_eq!(
        events(&mut play, "a"),
        ["WaitForFirstConsumer: waiting for first consumer to be created before binding"]
    );
    for name in ["a", "b"] {
        play.post(PODS, &user(name, name));
    }
    play.pass(Duration::from_millis(500));
    let chosen = |play: &mut Play, name: &str| {
        claim(play, name)["metadata"]["annotations"]["volume.kubernetes.io/selected-node"].clone()
    };
    assert_eq!(
        [chosen(&mut play, "a"), chosen(&mut play, "b")],
        ["n1", "n2"],
        "the place is kept for the pod"
    );
    assert_eq!(play.pod("a")["spec"].get("nodeName"), None);
    play.rest();
    for (name, node) in [("a", "n1"), ("b", "n2")] {
        assert_eq!(shown(&mut play, name)[0], "Bound");
        assert_eq!(play.pod(name)["spec"]["nodeName"], node);
    }
    // with a node that goes meanwhile, another one is chosen
    play.post(CLAIMS, &new_claim("c", Some("late")));
    play.post(PODS, &user("c", "c"));
    play.pass(Duration::from_millis(500));
    assert_eq!(chosen(&mut play, "c"), "n1");
    play.delete("/api/v1/nodes/n1");
    play.rest();
    assert_eq!(play.pod("c")["spec"]["nodeName"], "n2");
    assert_eq!(chosen(&mut play, "c"), "n2");
}

#[test]
fn the_pods_of_a_stateful_set_have_volumes_of_their_nodes() {
    let mut play = play();
    class(
        &mut play,
        "late",
        &json!({"volumeBindingMode": "WaitForFirstConsumer"}),
    );
    let template = json!({"metadata": {"name": "data"}, "spec": new_claim("", Some("late"))["spec"]});
    let more = json!({"podManagementPolicy": "Parallel", "volumeClaimTemplates": [template]});
    let sets = "/apis/apps/v1/namespaces/default/statefulsets";
    play.post(sets, &workload("StatefulSet", 4, &more));
    play.rest();
    for index in 0..4 {
        let bound = claim(&mut play, &format!("data-web-{index}"));
        let node = &bound["metadata"]["annotations"]["volume.kubernetes.io/selected-node"];
        let pod = play.pod(&format!("web-{index}"));
        assert!(condition(&pod, "Ready").0 == "True" && pod["spec"]["nodeName"] == *node);
    }
}

#[test]
fn the_choice_of_a_node_is_repeated_if_a_webhook_fails() {
    let mut play = play();
    class(
        &mut play,
        "late",
        &json!({"volumeBindingMode": "WaitForFirstConsumer"}),
    );
    play.post(CLAIMS, &new_claim("data", Some("late")));
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"],
        "resources": ["persistentvolumeclaims"]});
    let hook = json!({"name": "away.example.com", "rules": [rule], "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "clientConfig": {"url": "https://away.example.com"}});
    let hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    play.post(hooks, &json!({"metadata": {"name": "away"}, "webhooks": [hook]}));
    play.post(PODS, &user("p", "data"));
    let mut failed = 0;
    for _ in 0..20 {
        play.pass(Duration::from_millis(500));
        for call in play.0.calls() {
            play.0.resume(call.id, WebhookReply::Failed("it is away".into()));
            failed += 1;
        }
    }
    assert!(failed > 1, "it is tried again");
    assert_eq!(shown(&mut play, "data")[0], "Pending");
    play.delete(&format!("{hooks}/away"));
    play.rest();
    assert_eq!(shown(&mut play, "data")[0], "Bound");
    assert_eq!(condition(&play.pod("p"), "Ready").0, "True");
}

#[test]
fn claims_are_given_the_default_class_and_wait_for_a_missing_one() {
    let mut play = play();
    class(&mut play, "plain", &json!({}));
    for (name, class) in [("lost", Some("nowhere")), ("none", Some("")), ("open", None)] {
        play.post(CLAIMS, &new_claim(name, class));
    }
    play.rest();
    for name in ["lost", "none", "open"] {
        assert_eq!(shown(&mut play, name)[0], "Pending", "{name}");
    }
    assert_eq!(
        events(&mut play, "lost"),
        ["ProvisioningFailed: storageclass.storage.k8s.io \"nowhere\" not found"]
    );
    let unclassed =
        "FailedBinding: no persistent volumes available for this claim and no storage class is set";
    assert_eq!(events(&mut play, "open"), [unclassed]);
    let marked = json!({"metadata": {"name": "usual", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "disk.example.com"});
    play.post(CLASSES, &marked);
    let made = play.post(CLAIMS, &new_claim("new", None));
    assert_eq!(made["spec"]["storageClassName"], "usual", "by admission");
    class(&mut play, "nowhere", &json!({}));
    assert_eq!(
        row(&mut play, CLASSES, 2),
        json!([
            "usual (default)",
            "disk.example.com",
            "Delete",
            "Immediate",
            "false",
            "0s"
        ])
    );
    play.rest();
    assert_eq!(shown(&mut play, "new"), ["Bound", "usual", "1Gi"]);
    assert_eq!(
        shown(&mut play, "open"),
        ["Bound", "usual", "1Gi"],
        "it is given afterwards"
    );
    assert_eq!(
        shown(&mut play, "lost"),
        ["Bound", "nowhere", "1Gi"],
        "the class came"
    );
    assert_eq!(
        shown(&mut play, "none")[0],
        "Pending",
        "a claim may refuse the default"
    );
}

#[test]
fn a_pod_waits_for_a_claim_that_is_not_there() {
    let mut play = play();
    play.post(PODS, &user("p", "data"));
    play.rest();
    assert_eq!(
        condition(&play.pod("p"), "PodScheduled").2,
        "0/2 nodes are available: persistentvolumeclaim \"data\" not found."
    );
    play.post(CLAIMS, &new_claim("data", None));
    play.rest();
    assert_eq!(condition(&play.pod("p"), "Ready").0, "True");
}

#[test]
fn classes_are_filled_in_and_checked() {
    let mut play = play();
    class(&mut play, "disk", &json!({"parameters": {"a": "b"}}));
    let path = format!("{CLASSES}/disk");
    let made = play.get(&path).unwrap();
    assert_eq!(
        (&made["reclaimPolicy"], &made["volumeBindingMode"]),
        (&json!("Delete"), &json!("Immediate"))
    );
    for (change, why) in [
        (
            json!({"provisioner": "other"}),
            "updates to provisioner are forbidden.",
        ),
        (
            json!({"parameters": {"a": "c"}}),
            "updates to parameters are forbidden.",
        ),
        (
            json!({"reclaimPolicy": "Retain"}),
            "updates to reclaimPolicy are forbidden.",
        ),
        (
            json!({"volumeBindingMode": "WaitForFirstConsumer"}),
            "field is immutable",
        ),
    ] {
        let (code, message) = refused(&mut play, &path, &change);
        assert!(code == 422 && message.contains(why), "{message}");
    }
    let more = json!({"allowVolumeExpansion": true});
    assert_eq!(play.merge(&path, &more)["allowVolumeExpansion"], true);
    for bad in [
        json!({}),
        json!({"provisioner": "a b"}),
        json!({"provisioner": "a", "reclaimPolicy": "Recycle"}),
        json!({"provisioner": "a", "volumeBindingMode": "Later"}),
    ] {
        let mut class = bad.clone();
        class["metadata"] = json!({"name": "bad"});
        let request = Request::new(Method::Post, CLASSES, Some(&class));
        assert_eq!(play.0.handle(&request).response().unwrap().code, 422, "{bad}");
    }
}

#[test]
fn a_claim_grows_only_if_its_class_allows_it_and_never_shrinks() {
    let mut play = play();
    let path = |name: &str| format!("{CLAIMS}/{name}");
    play.post(CLAIMS, &new_claim("old", None));
    play.rest();
    class(&mut play, "fixed", &json!({}));
    class(&mut play, "fluid", &json!({"allowVolumeExpansion": true}));
    for name in ["fixed", "fluid"] {
        play.post(CLAIMS, &new_claim(name, Some(name)));
    }
    let unbound = refused(&mut play, &path("fluid"), &sized("2Gi"));
    assert_eq!(unbound.0, 422, "{unbound:?}");
    play.rest();
    for name in ["old", "fixed"] {
        assert_eq!(
            refused(&mut play, &path(name), &sized("2Gi")),
            (
                403,
                format!(
                    "persistentvolumeclaims {name:?} is forbidden: only dynamically provisioned pvc can be \
                           resized and the storageclass that provisions the pvc must support resize"
                )
            )
        );
    }
    let (code, message) = refused(&mut play, &path("fluid"), &sized("512Mi"));
    assert!(
        code == 422 && message.contains("field can not be less than status.capacity"),
        "{message}"
    );
    let before = play.merge(&path("fluid"), &sized("2Gi"));
    assert_eq!(before["status"]["capacity"]["storage"], "1Gi");
}

#[test]
fn a_mounted_file_system_grows_soon_after_its_volume() {
    let mut play = play();
    class(&mut play, "disk", &json!({"allowVolumeExpansion": true}));
    play.post(CLAIMS, &new_claim("data", Some("disk")));
    play.post(PODS, &user("p", "data"));
    play.rest();
    play.merge(&format!("{CLAIMS}/data"), &sized("3Gi"));
    let mut seen = Vec::new();
    while let Some(due) = play.0.next_due() {
        play.0.advance(due);
        let now = growth(&mut play, "data");
        if seen.last() != Some(&now) {
            seen.push(now);
        }
    }
    assert_eq!(seen, ["1Gi Resizing", "1Gi FileSystemResizePending", "3Gi "]);
    let claim = claim(&mut play, "data");
    let volume = format!("{VOLUMES}/{}", claim["spec"]["volumeName"].as_str().unwrap());
    assert_eq!(play.get(&volume).unwrap()["spec"]["capacity"]["storage"], "3Gi");
    assert_eq!(claim["status"].get("allocatedResourceStatuses"), None);
}

#[test]
fn a_file_system_that_grows_offline_waits_for_a_pod_that_starts_anew() {
    let mut play = play();
    let offline = json!({"allowVolumeExpansion": true, "parameters": {"sim.kruise.io/expansion": "offline"}});
    class(&mut play, "disk", &offline);
    play.post(CLAIMS, &new_claim("data", Some("disk")));
    play.post(PODS, &user("p", "data"));
    play.rest();
    play.merge(&format!("{CLAIMS}/data"), &sized("3Gi"));
    play.rest();
    assert_eq!(growth(&mut play, "data"), "1Gi FileSystemResizePending");
    let (_, _, message) = condition(&claim(&mut play, "data"), "FileSystemResizePending");
    assert_eq!(
        message,
        "Waiting for user to (re-)start a pod to finish file system resize of volume on node."
    );
    // components that begin anew take the pod for one that had it mounted
    let now = play.0.now();
    let again = crate::World::over(play.0.into_api(), &crate::nodes::Options::default(), 7, now);
    let mut play = Play(again.unwrap());
    play.rest();
    assert_eq!(growth(&mut play, "data"), "1Gi FileSystemResizePending");
    play.delete(&format!("{PODS}/p"));
    play.rest();
    assert_eq!(growth(&mut play, "data"), "1Gi FileSystemResizePending");
    play.post(PODS, &user("p", "data"));
    play.rest();
    assert_eq!(growth(&mut play, "data"), "3Gi ");
}
