//! All samples on a fresh playground, applied by the server.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::process::{Playground, Scratch};

const APPLY: &str = "application/apply-patch+yaml";
const POD: &str = "/api/v1/namespaces/default/pods/web-0";

/// The path of an object.
fn path(object: &Value) -> String {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let version = text("/apiVersion");
    let kind = text("/kind").to_lowercase();
    let is_wide =
        ["resourcedistribution", "sidecarset", "nodeimage", "nodepodprobe"].contains(&kind.as_str());
    let place = if is_wide { "" } else { "namespaces/default/" };
    format!("/apis/{version}/{place}{kind}s/{}", text("/metadata/name"))
}

fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples");
    let folders = ["", "v1beta1", "v1alpha1"].map(|name| root.join(name));
    let entries = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "yaml"));
    files.sort();
    files
}

#[test]
fn all_samples_apply_on_a_fresh_playground() {
    let scratch = Scratch::new("samples");
    let playground = Playground::start(
        &scratch,
        &["--fast", "--feature-gates", "ResourceDistributionGate=true"],
    );
    let apply = |path: &str, object: &Value| {
        let target = format!("{path}?fieldManager=samples&force=true&fieldValidation=Strict");
        playground.request("PATCH", &target, APPLY, &object.to_string())
    };
    // whose containers a sample starts anew
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0"}, "spec": {"containers": [
        {"name": "web", "image": "web:1"}, {"name": "cache", "image": "cache:1"}]}});
    assert_eq!(apply(POD, &pod).0, 201);
    playground.until("the pod", |playground| {
        (playground.get(POD)["status"]["phase"] == "Running").then_some(())
    });
    let files = files();
    assert!(files.len() > 30, "{files:?}");
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        for object in documents {
            let (code, answer) = apply(&path(&object), &object);
            assert!([200, 201].contains(&code), "{}: {code} {answer}", file.display());
            let entries = answer["metadata"]["managedFields"].as_array().unwrap();
            assert!(
                entries.iter().any(|entry| entry["manager"] == "samples"),
                "{entries:?}"
            );
        }
    }
}
