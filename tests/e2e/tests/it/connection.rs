//! What the suite sends over HTTP, beside what kubectl sends and prints.

use kruise_e2e::kubectl::Kubectl;
use serde_json::{Value, json};

use crate::cluster::{scenario, web};

const CREATE: [&str; 3] = ["create", "-f", "-"];

fn printed(kubectl: &Kubectl, args: &[&str]) -> Value {
    let text = kubectl.run(&[&["get", "-o", "json"], args].concat()).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn config_map(name: &str) -> Value {
    let metadata = json!({"name": name, "labels": {"app": "connection"}});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn what_is_read_is_what_kubectl_prints() {
    let scenario = scenario("connection-reads");
    let kubectl = &scenario.kubectl;
    kubectl.apply_all(&[web(1), config_map("shown")]).unwrap();
    // Of what nothing writes meanwhile: built in and defined, in a namespace and in none, by each kind of name.
    for (resource, name) in [
        ("configmap", "shown"),
        ("ns", "connection-reads"),
        ("priorityclasses.scheduling.k8s.io", "system-node-critical"),
        ("crd", "clonesets.apps.kruise.io"),
    ] {
        let read = kubectl.get(resource, name).unwrap();
        assert_eq!(read, printed(kubectl, &[resource, name]), "{resource}");
    }
    for resource in ["clone", "clonesets.v1alpha1.apps.kruise.io", "cloneset"] {
        let read = kubectl.get(resource, "web").unwrap();
        let shown = printed(kubectl, &[resource, "web"]);
        for part in ["apiVersion", "kind", "spec"] {
            assert_eq!(read[part], shown[part], "{resource}");
        }
    }
    for (resource, selector) in [
        ("configmaps", "app=connection"),
        ("configmaps", "app in (none)"),
        ("crds", ""),
    ] {
        let read = Value::Array(kubectl.list(resource, selector).unwrap());
        let shown = printed(kubectl, &[resource, "-l", selector]);
        assert_eq!(read, shown["items"], "{resource} {selector}");
    }
    for (resource, name) in [("pod", "missing"), ("nothing", "missing")] {
        let read = kubectl.get(resource, name).unwrap_err().to_string();
        let shown = kubectl.refused(&["get", resource, name], "").unwrap();
        assert!(read.ends_with(&shown), "{read} is not {shown}");
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn what_is_written_is_what_kubectl_writes() {
    let scenario = scenario("connection-writes");
    let kubectl = &scenario.kubectl;
    let created = kubectl.create(&config_map("sent")).unwrap();
    assert_eq!(created, printed(kubectl, &["configmap", "sent"]));
    kubectl
        .run_with_input(&CREATE, &config_map("run").to_string())
        .unwrap();
    let patch = json!({"data": {"a": "b"}});
    kubectl.patch("cm", "sent", &patch).unwrap();
    let patched = ["patch", "cm", "run", "--type=merge", "-p", &patch.to_string()];
    kubectl.run(&patched).unwrap();
    // What the server keeps of who wrote what; the embedded API keeps nothing.
    let writers = |name: &str| {
        let shown = printed(kubectl, &["configmap", name, "--show-managed-fields"]);
        assert_eq!(shown["data"], patch["data"], "{name}");
        let entries = shown["metadata"]["managedFields"].as_array().cloned();
        let parts = |entry: Value| ["manager", "operation", "fieldsV1"].map(|part| entry[part].clone());
        entries
            .unwrap_or_default()
            .into_iter()
            .map(parts)
            .collect::<Vec<_>>()
    };
    assert_eq!(writers("sent"), writers("run"));

    // Its data is compared byte by byte.
    let revision = json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "sent"},
        "revision": 1, "data": {"spec": "x < y && y > z"},
    });
    kubectl.create(&revision).unwrap();
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    kubectl.patch("controllerrevisions", "sent", &label).unwrap();

    let mut wrong = config_map("wrong");
    wrong["dta"] = json!({});
    let sent = kubectl.create(&wrong).unwrap_err().to_string();
    let run = kubectl.refused(&CREATE, &wrong.to_string()).unwrap();
    let cause = r#"unknown field "dta""#;
    assert!(sent.contains(cause) && run.contains(cause), "{sent}, {run}");

    let unknown = json!({"apiVersion": "v1", "kind": "Nothing", "metadata": {"name": "a"}});
    let sent = kubectl.create(&unknown).unwrap_err().to_string();
    let cause = r#"no matches for kind "Nothing" in version "v1""#;
    assert!(sent.ends_with(cause), "{sent}");
    kubectl.refused(&CREATE, &unknown.to_string()).unwrap();
}
