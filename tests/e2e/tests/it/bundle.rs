//! `kruise bundle` of a rollout that does not go on: what helps is in it, and what is secret is not.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::cluster::{Scenario, scenario, text, variable, web};

/// Planted in the places where users have secrets.
const SECRET: &str = "hunter2-hunter2";

/// What the command says, and the files of the archive.
fn bundle(scenario: &Scenario, namespace: &str) -> (String, BTreeMap<String, String>) {
    let file = std::env::temp_dir().join(format!("kruise-e2e-bundle-{}.tar.gz", std::process::id()));
    let output = Command::new(variable("KRUISE_E2E_BIN"))
        .args(["bundle", "--namespace", namespace, "--output"])
        .arg(&file)
        .arg("--kubeconfig")
        .arg(scenario.kubectl.kubeconfig())
        .output()
        .unwrap();
    let files = output.status.success().then(|| unpacked(&file));
    let _removed = std::fs::remove_file(&file);
    let files = files.unwrap_or_else(|| panic!("{output:?}"));
    (String::from_utf8_lossy(&output.stdout).into_owned(), files)
}

fn unpacked(file: &Path) -> BTreeMap<String, String> {
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(std::fs::File::open(file).unwrap()));
    let read = |entry: std::io::Result<tar::Entry<'_, _>>| {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().display().to_string();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        (path, text)
    };
    archive.entries().unwrap().map(read).collect()
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_bundle_explains_a_rollout_that_waits_and_has_no_secret() {
    let namespace = "bundle";
    let scenario = scenario(namespace);
    let mut set = web(2);
    set["metadata"]["annotations"] = json!({"note": SECRET});
    set["spec"]["template"]["metadata"]["annotations"] = json!({"note": SECRET});
    set["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"] = json!(SECRET);
    set["spec"]["template"]["spec"]["containers"][0]["args"] = json!(["--password", SECRET]);
    scenario.kubectl.apply(&set).unwrap();
    scenario.until_status(&json!({"readyReplicas": 2, "updatedReadyReplicas": 2}));
    // Pods that no node can take: the CloneSet is not settled.
    scenario.patch(&json!({"spec": {"replicas": 3, "template": {"spec": {"nodeSelector": {"no": "node"}}}}}));
    scenario.until_status(&json!({"replicas": 3, "observedGeneration": 2}));

    let (said, files) = bundle(&scenario, namespace);
    assert!(said.contains("objects"), "{said}");
    for (path, content) in &files {
        assert!(!content.contains(SECRET), "{path}: {content}");
    }
    let file = |path: &str| -> &str {
        let content = files.get(&format!("kruise-bundle/{path}"));
        content.unwrap_or_else(|| panic!("{path} is not in {:?}", files.keys()))
    };
    let list = |path: &str| -> Vec<Value> { serde_json::from_str(file(path)).unwrap() };
    let sets = list("objects/clonesets.json");
    let web = sets
        .iter()
        .find(|set| text(set, "/metadata/name") == "web")
        .unwrap();
    assert_eq!(
        web["spec"]["template"]["spec"]["containers"][0]["env"][0],
        json!({"name": "A", "value": "<redacted>"})
    );
    assert_eq!(text(web, "/spec/template/spec/containers/0/image"), "nginx:1");
    let pods = list("objects/pods.json");
    assert_eq!(pods.len(), 3);
    assert!(
        pods.iter()
            .all(|pod| text(pod, "/metadata/namespace") == namespace)
    );
    assert!(!list("objects/controllerrevisions.json").is_empty());
    assert!(
        file("explain/clonesets/bundle.web.txt").contains("CloneSet bundle/web"),
        "{}",
        file("explain/clonesets/bundle.web.txt")
    );
    assert!(
        list("objects/events.json")
            .iter()
            .any(|event| text(event, "/reason") == "SuccessfulCreate")
    );
    let definitions = list("installation/definitions.json");
    assert!(
        definitions
            .iter()
            .any(|one| text(one, "/name") == "clonesets.apps.kruise.io")
    );
    let webhooks = list("installation/mutatingwebhookconfigurations.json");
    assert_eq!(webhooks[0]["webhooks"][0]["hasCaBundle"], true);
    let leases = list("installation/leases.json");
    assert!(
        leases
            .iter()
            .any(|lease| !text(lease, "/spec/holderIdentity").is_empty())
    );
    assert!(
        file("summary.txt").contains("clonesets: "),
        "{}",
        file("summary.txt")
    );
}
