//! Variables that read metadata: what a kubelet does not do by itself, and what an agent of the node has to.

use std::fs;
use std::time::Duration;

use kruise_e2e::process::{self, Signal};
use kruise_e2e::wait;
use serde_json::{Value, json};

use super::runtime::version;
use super::{OnNodes, WEB, identity, on_nodes, status_of, web_of};
use crate::cluster::{LIMIT, text};
use crate::in_place::{ENVIRONMENT_OF_WEB, reading};

/// The value of `CFG` in a running process.
pub(super) fn variable_of(pid: u32) -> Option<String> {
    let all = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let all = String::from_utf8_lossy(&all).into_owned();
    let found = all.split('\0').find_map(|one| one.strip_prefix("CFG="));
    found.map(str::to_owned)
}

/// The first process of the container `main`.
pub(super) fn main_of(on: &OnNodes) -> Option<u32> {
    let processes = on.runtime.processes(&on.pod());
    processes.containers.get("main").map(|running| running.pid)
}

fn state(pod: &Value) -> String {
    text(pod, "/metadata/labels/lifecycle.apps.kruise.io~1state")
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn a_variable_that_reads_an_annotation_changes_once_an_agent_restarts_its_container_and_reports_it() {
    let on = on_nodes("nodes-environment");
    let mut set = web_of(1, &json!([{"name": "main", "image": WEB}]));
    reading(&mut set, "old");
    on.scenario.kubectl.apply(&set).unwrap();
    on.until_updated(1);
    let before = on.pod();
    let running = main_of(&on).unwrap();
    assert_eq!(variable_of(running).as_deref(), Some("old"));

    reading(&mut set, "web");
    on.scenario.kubectl.apply(&set).unwrap();
    wait::until_true("the pod has the new value and is out of service", LIMIT, || {
        let pod = on.pod();
        Ok(text(&pod, "/metadata/annotations/config") == "web"
            && state(&pod) == "Updating"
            && status_of(&pod, "main")["ready"] == true)
    })
    .unwrap();
    // Longer than a kubelet needs for a change that it acts on.
    wait::observe_for(Duration::from_secs(5));
    on.scenario
        .until_status(&json!({"replicas": 1, "updatedReplicas": 1, "updatedReadyReplicas": 0}));
    assert_eq!(main_of(&on), Some(running), "a kubelet restarts nothing for it");
    assert_eq!(variable_of(running).as_deref(), Some("old"));

    // What an agent does: it ends the container, and reports what runs after that.
    process::signal(running, Signal::Kill).unwrap();
    let now = wait::until("the container runs anew", LIMIT, || {
        let pod = on.pod();
        let restarted =
            status_of(&pod, "main")["restartCount"] == 1 && status_of(&pod, "main")["ready"] == true;
        Ok(main_of(&on).filter(|pid| restarted && *pid != running))
    })
    .unwrap();
    assert_eq!(variable_of(now).as_deref(), Some("web"));
    assert_eq!(state(&on.pod()), "Updating", "nobody has said so yet");
    let report = crate::in_place::report(&on.pod(), ENVIRONMENT_OF_WEB);
    let name = text(&before, "/metadata/name");
    on.scenario.kubectl.patch("pods", &name, &report).unwrap();
    on.until_updated(1);
    let after = on.pod();
    assert_eq!(identity(&after), identity(&before));
    assert_eq!(version(&after).as_deref(), Some("1"));
}
