//! Workloads, webhooks and snapshots in a playground.

use serde_json::{Value, json};

use crate::process::{Playground, Scratch, is_closed, text};

const SETS: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/clonesets";
const OLD_SETS: &str = "/apis/apps.kruise.io/v1alpha1/namespaces/default/clonesets";
const PODS: &str = "/api/v1/namespaces/default/pods";
const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";

fn set(name: &str, replicas: u32) -> Value {
    json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "metadata": {"name": name}, "spec": {
        "replicas": replicas, "selector": {"matchLabels": {"app": name}},
        "updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 1}},
        "template": {"metadata": {"labels": {"app": name}},
                     "spec": {"containers": [{"name": "main", "image": "web:1"}]}}}})
}

/// Uid, address, image and restarts of each pod, if exactly `count` pods exist and are ready.
pub(crate) fn ready(playground: &Playground, count: usize) -> Option<Vec<[String; 4]>> {
    let list = playground.get(PODS);
    let pods = list["items"].as_array().unwrap();
    let is_ready = |pod: &&Value| {
        let conditions = pod["status"]["conditions"].as_array();
        conditions.is_some_and(|all| {
            all.iter()
                .any(|one| one["type"] == "Ready" && one["status"] == "True")
        })
    };
    let rows: Vec<_> = pods
        .iter()
        .filter(is_ready)
        .map(|pod| {
            let text = |pointer: &str| pod.pointer(pointer).unwrap().to_string().replace('"', "");
            [
                text("/metadata/uid"),
                text("/status/podIP"),
                text("/status/containerStatuses/0/image"),
                text("/status/containerStatuses/0/restartCount"),
            ]
        })
        .collect();
    (pods.len() == count && rows.len() == count).then_some(rows)
}

pub(crate) fn create(playground: &Playground, name: &str, replicas: u32) {
    let (code, answer) = playground.request("POST", SETS, JSON, &set(name, replicas).to_string());
    assert_eq!(code, 201, "{answer}");
}

fn update(playground: &Playground, name: &str, image: &str) {
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}});
    let path = format!("{SETS}/{name}");
    let (code, answer) = playground.request("PATCH", &path, MERGE, &patch.to_string());
    assert_eq!(code, 200, "{answer}");
}

#[test]
fn a_cloneset_is_created_and_updated_in_place_and_ctrl_c_leaves_nothing() {
    let scratch = Scratch::new("life");
    let playground = Playground::start(&scratch, &["--fast", "--nodes=4"]);
    assert_eq!(
        playground.get("/api/v1/nodes")["items"].as_array().unwrap().len(),
        4
    );
    create(&playground, "web", 3);
    let before = playground.until("three pods are ready", |all| ready(all, 3));
    update(&playground, "web", "web:2");
    let after = playground.until("three pods run the new image", |all| {
        ready(all, 3).filter(|pods| pods.iter().all(|pod| pod[2] == "web:2"))
    });
    for (was, is) in before.iter().zip(&after) {
        assert_eq!(was[..2], is[..2], "uid and address");
        assert_eq!((was[3].as_str(), is[3].as_str()), ("0", "1"), "restarts");
    }
    let api = playground.api;
    assert_eq!(playground.end("INT"), Some(0));
    assert!(is_closed(api));
    assert_eq!(scratch.left(), [""; 0]);
}

#[test]
fn the_managers_webhooks_are_called() {
    let scratch = Scratch::new("webhooks");
    let playground = Playground::start(&scratch, &["--fast"]);
    let mut wrong = set("web", 1);
    wrong["spec"]["selector"]["matchLabels"]["app"] = json!("other");
    let (code, answer) = playground.request("POST", SETS, JSON, &wrong.to_string());
    assert_eq!(code, 422, "validated: {answer}");
    create(&playground, "web", 1);
    let stored = playground.get(&format!("{SETS}/web"));
    assert_eq!(stored["spec"]["revisionHistoryLimit"], 10, "defaulted: {stored}");
    let older = playground.get(&format!("{OLD_SETS}/web"));
    assert_eq!(older["apiVersion"], "apps.kruise.io/v1alpha1");
    assert_eq!(
        older["spec"]["updateStrategy"]["type"], "InPlaceIfPossible",
        "converted: {older}"
    );
    assert_eq!(playground.end("TERM"), Some(0));
}

#[test]
fn the_kubeconfig_appears_when_nodes_are_ready_and_webhooks_answer() {
    let scratch = Scratch::new("written");
    let playground = Playground::start_until_written(&scratch, scratch.file("config"), &["--fast"]);
    let sidecars = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet", "metadata": {"name": "logs"},
        "spec": {"selector": {"matchLabels": {"app": "web"}},
                 "containers": [{"name": "logs", "image": "logs:1"}]}});
    for (path, object) in [
        (SETS, set("web", 1)),
        ("/apis/apps.kruise.io/v1beta1/sidecarsets", sidecars),
    ] {
        let (code, answer) = playground.request("POST", path, JSON, &object.to_string());
        assert_eq!(code, 201, "{answer}");
    }
    // through the conversion webhook
    playground.get(&format!("{OLD_SETS}/web"));
    let nodes = playground.get("/api/v1/nodes");
    for node in nodes["items"].as_array().unwrap() {
        assert_eq!(node["spec"]["taints"], Value::Null, "not ready: {node}");
    }
    assert_eq!(playground.end("INT"), Some(0));
    assert_eq!(scratch.left(), [""; 0]);
}

/// The page of the playground, in one line.
fn page() -> String {
    include_str!("../../../docs/playground.md").replace('\n', " ")
}

#[test]
fn what_the_page_says_is_not_supported_is_refused_or_stored_without_effect() {
    let scratch = Scratch::new("unsupported");
    let playground = Playground::start(&scratch, &["--fast"]);
    let groups = playground.get("/apis")["groups"].clone();
    let mut served: Vec<_> = groups
        .as_array()
        .unwrap()
        .iter()
        .map(|group| group["name"].as_str().unwrap().to_owned())
        .filter(|group| !group.ends_with("kruise.io"))
        .collect();
    let page = page();
    let (_, listed) = page.split_once("API groups other than the core group, ").unwrap();
    let (listed, _) = listed.split_once(", and those of custom resources").unwrap();
    let words = listed.split([' ', ',', '`']).filter(|word| !word.is_empty());
    let mut listed: Vec<_> = words.map(str::to_owned).collect();
    served.sort();
    listed.sort();
    assert_eq!(served, listed, "API groups");
    let template = json!({"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "main", "image": "db:1"}]}});
    let object = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "db"}, "spec": {
        "selector": {"matchLabels": {"app": "db"}}, "template": template}});
    let path = "/apis/apps/v1/namespaces/default/daemonsets";
    let (code, answer) = playground.request("POST", path, JSON, &object.to_string());
    assert_eq!(code, 201, "{answer}");
    // A pod of a Deployment that was created later, so that those of the DaemonSet would exist, too.
    let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "selector": {"matchLabels": {"app": "db"}}, "template": template}});
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let (code, answer) = playground.request("POST", path, JSON, &object.to_string());
    assert_eq!(code, 201, "{answer}");
    playground.until("a pod is ready", |playground| ready(playground, 1));
    assert_eq!(playground.end("INT"), Some(0));
}

#[test]
fn explain_reads_the_settings_of_the_manager_of_a_playground() {
    let scratch = Scratch::new("explain");
    let playground = Playground::start(&scratch, &["--fast"]);
    create(&playground, "web", 1);
    let explained = playground.until("its manager leads", |playground| {
        let kubeconfig = ["--kubeconfig", text(&playground.kubeconfig)];
        let output = scratch.output(&[&["explain", "clone/web"][..], &kubeconfig].concat());
        let explained = String::from_utf8(output.stdout).unwrap();
        (!explained.contains("are not known")).then_some(explained)
    });
    assert!(explained.contains("CloneSet default/web"), "{explained}");
    assert_eq!(playground.end("INT"), Some(0));
}

#[test]
fn two_playgrounds_share_nothing() {
    let scratch = Scratch::new("two");
    let one = Playground::start(&scratch, &["--fast"]);
    let two = Playground::start(&scratch, &["--fast"]);
    assert_ne!((one.api, &one.kubeconfig), (two.api, &two.kubeconfig));
    create(&one, "web", 1);
    one.until("a pod is ready", |one| ready(one, 1));
    assert_eq!(two.get(SETS)["items"], json!([]));
    assert_eq!(one.end("INT"), Some(0));
    two.get(SETS);
    assert_eq!(two.end("HUP"), Some(0));
    assert_eq!(scratch.left(), [""; 0]);
}

#[test]
fn a_loaded_snapshot_continues_where_it_was_saved() {
    let scratch = Scratch::new("saved");
    let file = scratch.file("snapshot");
    let first = Playground::start(&scratch, &["--fast", "--nodes=2", "--save", text(&file)]);
    create(&first, "web", 2);
    let before = first.until("two pods are ready", |first| ready(first, 2));
    assert_eq!(first.end("INT"), Some(0));
    assert_eq!(scratch.left(), ["snapshot"]);

    let second = Playground::start(&scratch, &["--fast", "--load", text(&file)]);
    assert_eq!(
        ready(&second, 2),
        Some(before.clone()),
        "the same pods, none restarted"
    );
    assert_eq!(second.get("/api/v1/nodes")["items"].as_array().unwrap().len(), 2);
    update(&second, "web", "web:2");
    let after = second.until("they are updated", |second| {
        ready(second, 2).filter(|pods| pods.iter().all(|pod| pod[2] == "web:2"))
    });
    let place = |pods: &[[String; 4]]| pods.iter().map(|pod| pod[..2].to_vec()).collect::<Vec<_>>();
    assert_eq!(place(&before), place(&after));
    assert_eq!(second.end("INT"), Some(0));
}
