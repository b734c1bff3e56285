//! A SidecarSet and a Deployment in one `kubectl apply`: every pod has its sidecar.
//!
//! `KRUISE_E2E_TOGETHER` sets the number of tries, each with three pods.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::manager::free_port;
use kruise_e2e::process;
use kruise_e2e::wait;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, scenario, scenario_alone, variable};

const TRIES: usize = 20;
const PODS: usize = 3;

fn tries() -> usize {
    let given = std::env::var("KRUISE_E2E_TOGETHER").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(TRIES)
}

/// A SidecarSet for one label, and a Deployment with it, in the order in which they are applied.
fn manifests(name: &str, namespace: &str) -> [Value; 2] {
    let set = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet", "metadata": {"name": name},
    "spec": {
        "selector": {"matchLabels": {name: "yes"}},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "updateStrategy": {"type": "NotUpdate"},
        "containers": [{"name": "agent", "image": "agent:1"}],
    }});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
    "spec": {"replicas": PODS, "selector": {"matchLabels": {name: "yes"}}, "template": {
        "metadata": {"labels": {name: "yes"}},
        "spec": {"containers": [{"name": "main", "image": "nginx:1"}]},
    }}});
    [set, deployment]
}

/// Applies both through `entry` in each try; returns the pods without a sidecar.
fn uninjected(scenario: &Scenario, entry: &Kubectl) -> Vec<String> {
    let kubectl = &scenario.kubectl;
    let namespace = kubectl.namespace().unwrap();
    let mut found = Vec::new();
    for number in 0..tries() {
        let name = format!("{namespace}-{number}");
        let applied = entry.apply_all(&manifests(&name, namespace));
        let pods = wait::until(&format!("{name} has its pods"), LIMIT, || {
            let pods = kubectl.list("pods", &format!("{name}=yes"))?;
            Ok((pods.len() >= PODS).then_some(pods))
        });
        let deleted = entry.run(&["delete", "sidecarset,deployment", &name, "--wait=false"]);
        applied.unwrap();
        deleted.unwrap();
        let lacks = |pod: &&Value| {
            let containers = pod["spec"]["containers"].as_array().unwrap();
            !containers.iter().any(|one| one["name"] == "agent")
        };
        let pods = pods.unwrap();
        found.extend(
            pods.iter()
                .filter(lacks)
                .map(|pod| pod["metadata"]["name"].to_string()),
        );
    }
    found
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn pods_created_together_with_their_sidecarset_have_its_sidecars() {
    let scenario = scenario("together");
    assert_eq!(uninjected(&scenario, &scenario.kubectl), Vec::<String>::new());
}

/// A second API server on the same data, ended when dropped.
struct SecondServer(Child);

impl SecondServer {
    /// Starts it as the first one was started, on another port, and returns a client of it.
    fn start(kubectl: &Kubectl) -> (Self, Kubectl) {
        let dir = Path::new(&variable("KRUISE_E2E_DIR")).to_owned();
        let first = process::read_pid_file(&dir.join("kube-apiserver.pid")).unwrap();
        let arguments = std::fs::read(format!("/proc/{}/cmdline", first.unwrap())).unwrap();
        let arguments = String::from_utf8(arguments).unwrap();
        let arguments: Vec<&str> = arguments.split_terminator('\0').collect();
        let (program, arguments) = arguments.split_first().unwrap();
        let is_port = |argument: &&str| argument.starts_with("--secure-port=");
        let (_, port) = arguments
            .iter()
            .copied()
            .find(is_port)
            .unwrap()
            .split_once('=')
            .unwrap();
        let other = free_port().unwrap().to_string();
        let kept = |argument: &&&str| !is_port(argument) && !argument.starts_with("--audit-");
        let log = std::fs::File::create(dir.join("second-apiserver.log")).unwrap();
        let server = Command::new(program)
            .args(arguments.iter().filter(kept))
            .arg(format!("--secure-port={other}"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let server = Self(server);
        let kubeconfig = std::fs::read_to_string(kubectl.kubeconfig()).unwrap();
        let path = dir.join("second.kubeconfig");
        let ours = kubeconfig.replace(&format!(":{port}"), &format!(":{other}"));
        assert_ne!(ours, kubeconfig);
        std::fs::write(&path, ours).unwrap();
        let client = kubectl.with_kubeconfig(path);
        wait::until_true("the second API server answers", LIMIT, || {
            let (answer, _) = client.attempt(&["get", "--raw", "/readyz"], "")?;
            Ok(answer == "ok")
        })
        .unwrap();
        (server, client)
    }
}

impl Drop for SecondServer {
    fn drop(&mut self) {
        // Both fail only if it is gone already.
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn pods_created_through_another_api_server_than_their_sidecarset_have_its_sidecars() {
    let scenario = scenario_alone("together-two");
    let (_server, second) = SecondServer::start(&scenario.kubectl);
    // Controllers create the pods through the first one.
    assert_eq!(uninjected(&scenario, &second), Vec::<String>::new());
}
