//! Hooks, and what they mean for processes.

use std::time::Duration;

use kruise_e2e::{process, wait};
use serde_json::json;

use super::runtime::version;
use super::{WEB, on_nodes, server_and_neighbour, web_of};
use crate::cluster::{LIMIT, text};

/// What holds pods here.
const HOLD: &str = "lab.test/drain";

#[test]
fn a_pod_serves_until_its_hook_before_deletion_lets_go_and_then_its_processes_end() {
    let Some(on) = on_nodes("nodes-pre-delete") else {
        return;
    };
    let mut set = web_of(1, &server_and_neighbour(WEB));
    set["spec"]["lifecycle"] = json!({"preDelete": {"finalizersHandler": [HOLD]}});
    set["spec"]["template"]["metadata"]["finalizers"] = json!([HOLD]);
    let kubectl = &on.scenario.kubectl;
    kubectl.apply(&set).unwrap();
    on.until_updated(1);
    let (before, running) = (on.pod(), on.runtime.processes(&on.pod()));
    let name = text(&before, "/metadata/name");

    kubectl
        .run(&["scale", "clonesets", "web", "--replicas=0"])
        .unwrap();
    wait::until_true("the pod is held", LIMIT, || {
        let state = text(
            &kubectl.get("pods", &name)?,
            "/metadata/labels/lifecycle.apps.kruise.io~1state",
        );
        Ok(state == "PreparingDelete")
    })
    .unwrap();
    // Longer than its processes would have after a deletion.
    wait::observe_for(Duration::from_secs(8));
    assert_eq!(on.runtime.processes(&on.pod()), running);
    assert_eq!(version(&before).as_deref(), Some("1"));

    kubectl
        .patch("pods", &name, &json!({"metadata": {"finalizers": null}}))
        .unwrap();
    wait::until_true("the pod is gone", LIMIT, || {
        Ok(kubectl.list("pods", "app=web")?.is_empty())
    })
    .unwrap();
    let sandbox = running.sandboxes.iter();
    let pids: Vec<u32> = running
        .containers
        .values()
        .chain(sandbox)
        .map(|one| one.pid)
        .collect();
    assert_eq!(pids.len(), 3);
    wait::until_true("its processes end", LIMIT, || {
        Ok(!pids.iter().any(|pid| process::is_running(*pid)))
    })
    .unwrap();
    assert_eq!(version(&before), None);
}
