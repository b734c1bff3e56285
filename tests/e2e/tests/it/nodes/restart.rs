//! `kruise restart` with agents: containers of a whole workload begin anew, one pod after another.

use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::json;

use super::agent::Agents;
use super::{OnNodes, WEB, identity, on_nodes_alone, server_and_neighbour, status_of, web_of};
use crate::cluster::{is_ready, variable};

/// Number of pods that are not Ready.
fn out_of_service(on: &OnNodes) -> usize {
    on.scenario.pods().iter().filter(|pod| !is_ready(pod)).count()
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn a_container_of_every_pod_begins_anew_while_one_pod_at_most_is_out_of_service() {
    let on = on_nodes_alone("nodes-restart");
    let _agents = Agents::start(&on);
    on.scenario
        .kubectl
        .apply(&web_of(3, &server_and_neighbour(WEB)))
        .unwrap();
    on.until_updated(3);
    let before: Vec<_> = on.scenario.pods().iter().map(identity).collect();
    let mut restart = Command::new(variable("KRUISE_E2E_BIN"))
        .args([
            "restart",
            "clone/web",
            "--containers=main",
            "--namespace=nodes-restart",
            "--unready-grace=1",
            "--any-agent",
        ])
        .arg("--kubeconfig")
        .arg(on.scenario.kubectl.kubeconfig())
        .spawn()
        .unwrap();
    let mut most = 0;
    let ended = loop {
        most = out_of_service(&on).max(most);
        if let Some(ended) = restart.try_wait().unwrap() {
            break ended;
        }
        thread::sleep(Duration::from_millis(100));
    };
    assert!(ended.success());
    assert_eq!(most, 1);
    let after = on.scenario.pods();
    assert_eq!(after.iter().map(identity).collect::<Vec<_>>(), before);
    for pod in &after {
        assert_eq!(status_of(pod, "main")["restartCount"], json!(1), "{pod}");
        assert_eq!(status_of(pod, "neighbour")["restartCount"], json!(0), "{pod}");
    }
}
