//! Agents of nodes with real container runtimes, under the rights that are printed for them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kruise_e2e::audit::{Entry, MANAGER};
use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::manager::free_port;
use kruise_e2e::process::{self, Signal};
use kruise_e2e::wait;
use serde_json::{Value, json};

use super::environment::{main_of, variable_of};
use super::{OnNodes, TOOL, WEB, identity, on_nodes_alone, status_of, web_of};
use crate::agent_policy::grant;
use crate::cluster::{Flagged, LIMIT, audit_log, kubeconfig_of_account, text, variable};
use crate::in_place::reading;

/// User agents of agents start like this.
const AGENT: &str = "kruise-daemon";
/// Jobs are accepted, and nodes get their NodeImages at once.
pub(super) const PULLS: [&str; 2] = [
    "--feature-gates=ImagePullJobGate=true",
    "--nodeimage-creation-delay=1s",
];

/// The agent of a node, which ends when dropped.
struct Agent {
    child: Child,
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have ended.
        let _gone = process::signal(self.child.id(), Signal::Kill);
        self.child.wait().unwrap();
    }
}

/// Agents on all nodes of a scenario.
pub(super) struct Agents {
    nodes: Vec<String>,
    running: Vec<Agent>,
}

impl Agents {
    /// Grants their rights, with the policy that limits them to their nodes, and starts them.
    pub(super) fn start(on: &OnNodes) -> Self {
        let kubectl = &on.scenario.kubectl;
        grant(&on.scenario);
        let nodes = kubectl.list("nodes", "type=real").unwrap();
        let nodes: Vec<String> = nodes.iter().map(|node| text(node, "/metadata/name")).collect();
        let running = nodes.iter().map(|node| start(on, node)).collect();
        Self { nodes, running }
    }

    /// Waits until every node has its NodeImage; returns the names of the nodes.
    pub(super) fn until_listed(&self, kubectl: &Kubectl) -> &[String] {
        wait::until_true("the nodes have NodeImages", LIMIT, || {
            let mut nodes = self.nodes.iter();
            Ok(nodes.all(|node| kubectl.get("nodeimages", node).is_ok()))
        })
        .unwrap();
        &self.nodes
    }
}

/// A kubeconfig with a token of the agents' account that is bound to the node.
fn kubeconfig(kubectl: &Kubectl, node: &str, dir: &Path) -> PathBuf {
    let system = kubectl.in_namespace("kruise-system");
    let bound = format!("--bound-object-name={node}");
    let bound = ["--bound-object-kind=Node", &bound];
    kubeconfig_of_account(&system, AGENT, &bound, dir)
}

fn start(on: &OnNodes, node: &str) -> Agent {
    let dir = PathBuf::from(variable("KRUISE_E2E_DIR"))
        .join("agents")
        .join(node);
    let kubeconfig = kubeconfig(&on.scenario.kubectl, node, &dir);
    let log = File::create(dir.join("agent.log")).unwrap();
    let socket = on.runtime.folder.join(node).join("containerd.sock");
    let agent = Path::new(&variable("KRUISE_E2E_BIN")).with_file_name(AGENT);
    let child = Command::new(agent)
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .arg(format!("--socket-file=unix://{}", socket.display()))
        .arg(format!("--addr=127.0.0.1:{}", free_port().unwrap()))
        .arg("--min-free-disk-percent=0")
        .arg("--v=4")
        .env("NODE_NAME", node)
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap();
    Agent { child }
}

pub(super) fn pull_job(name: &str, image: &str, nodes: &[String]) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "metadata": {"name": name},
        "spec": {"image": image, "parallelism": 10, "selector": {"names": nodes},
            "pullPolicy": {"backoffLimit": 0}, "completionPolicy": {"type": "Always"}},
    })
}

/// Waits until a job has ended; returns its status.
pub(super) fn until_ended(kubectl: &Kubectl, job: &str) -> Value {
    wait::until("the job has ended", wait::QUIET, || {
        let status = kubectl.get("imagepulljobs", job)?["status"].clone();
        Ok(status["completionTime"].is_string().then_some(status))
    })
    .unwrap()
}

/// The newest report of a node about a tag of an image of the lab.
pub(super) fn report(kubectl: &Kubectl, node: &str, image: &str, tag: &str) -> Value {
    let stored = kubectl.get("nodeimages", node).unwrap();
    let tags = stored["status"]["imageStatuses"][image]["tags"]
        .as_array()
        .cloned();
    let found = tags.into_iter().flatten().find(|one| one["tag"] == tag);
    found.unwrap_or_default()
}

fn writes_of_specifications(requests: &[Entry], node: &str) -> usize {
    let writes = requests.iter().filter(|request| request.is_write());
    writes
        .filter(|request| request.name == node && request.resource.starts_with("nodeimages"))
        .count()
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn agents_pull_tags_and_digests_and_each_image_of_a_node_costs_three_writes() {
    let on = on_nodes_alone("nodes-agents");
    let kubectl = &on.scenario.kubectl;
    let _flagged = Flagged::shared(kubectl.kubeconfig(), &PULLS);
    let agents = Agents::start(&on);
    assert!(agents.nodes.len() >= 3 && agents.running.len() == agents.nodes.len());
    agents.until_listed(kubectl);
    let image = "lab.test/web:3";
    for node in &agents.nodes {
        on.runtime.forget(node, image);
    }
    let mut log = audit_log();
    kubectl.create(&pull_job("tag", image, &agents.nodes)).unwrap();
    let status = until_ended(kubectl, "tag");
    assert_eq!(status["succeeded"], agents.nodes.len(), "{status}");
    let by_agents = log.read_new(AGENT).unwrap();
    for node in &agents.nodes {
        assert!(on.runtime.has(node, image), "{node}");
        assert_eq!(report(kubectl, node, "lab.test/web", "3")["phase"], "Succeeded");
        assert!(writes_of_specifications(&by_agents, node) <= 2, "{by_agents:?}");
    }

    let found = report(kubectl, &agents.nodes[0], "lab.test/web", "3");
    let digest = on.runtime.digest(&agents.nodes[0], image);
    assert!(text(&found, "/imageID").contains("sha256:"), "{found}");
    for node in &agents.nodes {
        on.runtime.forget(node, image);
    }
    let image = format!("lab.test/web@{digest}");
    let mut log = audit_log();
    kubectl
        .create(&pull_job("digest", &image, &agents.nodes))
        .unwrap();
    let status = until_ended(kubectl, "digest");
    assert_eq!(status["succeeded"], agents.nodes.len(), "{status}");
    let by_manager = log.read_new(MANAGER).unwrap();
    for node in &agents.nodes {
        assert!(on.runtime.has(node, &image), "{node}");
        assert_eq!(writes_of_specifications(&by_manager, node), 1, "{by_manager:?}");
    }

    kubectl
        .create(&pull_job("none", "lab.test/none:1", &agents.nodes))
        .unwrap();
    let status = until_ended(kubectl, "none");
    assert_eq!(status["failed"], agents.nodes.len(), "{status}");
    let failed = report(kubectl, &agents.nodes[0], "lab.test/none", "1");
    assert!(text(&failed, "/message").contains("not found"), "{failed}");
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn an_agent_restarts_the_container_whose_variable_reads_a_changed_annotation_and_no_other() {
    let on = on_nodes_alone("nodes-agent-environment");
    let _agents = Agents::start(&on);
    let mut set = web_of(
        1,
        &json!([{"name": "main", "image": WEB}, {"name": "neighbour", "image": TOOL}]),
    );
    reading(&mut set, "old");
    on.scenario.kubectl.apply(&set).unwrap();
    on.until_updated(1);
    let before = on.pod();
    let running = main_of(&on).unwrap();
    assert_eq!(variable_of(running).as_deref(), Some("old"));

    reading(&mut set, "new");
    on.scenario.kubectl.apply(&set).unwrap();
    wait::until_true("the set has seen the change", LIMIT, || {
        Ok(text(&on.pod(), "/metadata/annotations/config") == "new")
    })
    .unwrap();
    on.until_updated(1);
    let after = on.pod();
    assert_eq!(identity(&after), identity(&before));
    assert_eq!(status_of(&after, "main")["restartCount"], 1);
    assert_eq!(
        status_of(&after, "neighbour")["containerID"],
        status_of(&before, "neighbour")["containerID"]
    );
    let now = main_of(&on).unwrap();
    assert_eq!(variable_of(now).as_deref(), Some("new"));
}
