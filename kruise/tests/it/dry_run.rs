//! `kruise manager --dry-run` beside another manager: the rehearsal of docs/migration.md.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::process::{Playground, Scratch, send, text, wait_for_exit};

const SETS: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/clonesets";

fn is_ready(playground: &Playground, image: &str) -> Option<()> {
    let set = playground.get(&format!("{SETS}/web"));
    let status = &set["status"];
    let template = &set["spec"]["template"]["spec"]["containers"][0]["image"];
    let is_current = status["observedGeneration"] == set["metadata"]["generation"] && *template == image;
    (is_current && status["updatedReadyReplicas"] == 3).then_some(())
}

/// Writes in an audit log, without those of the lease, which a manager renews.
fn writes(audit: &Path) -> usize {
    let log = std::fs::read_to_string(audit).unwrap();
    let entries = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    entries
        .filter(|entry| {
            let verb = entry["verb"].as_str().unwrap_or_default();
            ["create", "update", "patch", "delete"].contains(&verb)
                && entry["objectRef"]["resource"] != "leases"
        })
        .count()
}

#[test]
fn a_dry_run_prints_nothing_at_rest_and_the_writes_of_a_rollout_and_writes_nothing() {
    let scratch = Scratch::new("dry-run");
    let audit = scratch.file("audit");
    let playground = Playground::start(&scratch, &["--fast", "--audit-log", text(&audit)]);
    let set = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "metadata": {"name": "web"}, "spec": {
        "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
        "updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 1}},
        "template": {"metadata": {"labels": {"app": "web"}},
                     "spec": {"containers": [{"name": "main", "image": "web:0"}]}}}});
    let (code, answer) = playground.request("POST", SETS, "application/json", &set.to_string());
    assert_eq!(code, 201, "{answer}");
    playground.until("three pods are ready", |playground| is_ready(playground, "web:0"));

    let (out, err) = (scratch.file("out"), scratch.file("err"));
    let flag = format!("--kubeconfig={}", playground.kubeconfig.display());
    let before = writes(&audit);
    let mut dry_run = scratch
        .kruise(&["manager", "--dry-run", &flag])
        .stdout(File::create(&out).unwrap())
        .stderr(File::create(&err).unwrap())
        .spawn()
        .unwrap();
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    playground.until("it runs", |_| {
        let log = read(&err);
        log.contains("controllers: cloneset-controller (v1beta1), statefulset-controller (v1beta1)")
            .then_some(())
    });
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(read(&out), "", "at rest");
    assert_eq!(writes(&audit), before, "nothing is written");

    // The manager may be faster than the dry run sees, but not with every pod of many rollouts.
    for round in 1..=20 {
        let image = format!("web:{round}");
        let patch =
            json!([{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": image}]);
        let path = format!("{SETS}/web");
        let (code, answer) =
            playground.request("PATCH", &path, "application/json-patch+json", &patch.to_string());
        assert_eq!(code, 200, "{answer}");
        playground.until("it is updated", |playground| is_ready(playground, &image));
        if read(&out).contains("CloneSet default/web: would update-in-place pods/web-") {
            break;
        }
    }
    let printed = read(&out);
    assert!(
        printed.contains("CloneSet default/web: would update-in-place pods/web-")
            && printed.contains(": image of main to web:"),
        "{printed}"
    );
    send(dry_run.id(), "INT");
    assert_eq!(wait_for_exit(&mut dry_run), Some(0));
    assert_eq!(playground.end("INT"), Some(0));
}
