//! From nothing: Helm installs the image on a cluster whose node runs containers. `cargo xtask e2e --chart`.
//!
//! Managers run as pods, the API server calls them by their Service, and they call it by its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::wait;
use serde_json::Value;

use crate::cluster::{LIMIT, text, until_webhooks_answer, variable};
use crate::nodes::runtime::version;
use crate::nodes::{WEB, containers, identity, server_and_neighbour, web_of};

const SYSTEM: &str = "kruise-system";
const MANAGERS: &str = "control-plane=controller-manager";
const AGENTS: &str = "control-plane=daemon";
const NODE: &str = "real-0";
const DEPLOYMENT: &str = "deployment/kruise-controller-manager";
/// Where pull secrets are copied to.
const COPIES: &str = "namespace/kruise-daemon-config";

/// A cluster, and the chart as the executable writes it.
struct Lab {
    kubectl: Kubectl,
    system: Kubectl,
    chart: String,
}

impl Lab {
    fn new() -> Self {
        let kubeconfig = variable("KRUISE_E2E_KUBECONFIG");
        let kubectl = Kubectl::new(variable("KRUISE_E2E_KUBECTL"), kubeconfig);
        let chart = PathBuf::from(variable("KRUISE_E2E_DIR")).join("chart");
        let chart = chart.display().to_string();
        let written = Command::new(variable("KRUISE_E2E_BIN"))
            .args(["chart", "--dir", &chart])
            .output()
            .unwrap();
        assert!(written.status.success(), "{written:?}");
        Self {
            system: kubectl.in_namespace(SYSTEM),
            kubectl,
            chart,
        }
    }

    /// Installs the release with the values of OpenKruise's chart and further ones.
    fn install(&self, values: &[&str]) {
        let image = "--set=manager.image.repository=lab.test/kruise,manager.image.tag=dev";
        let install = ["install", "kruise", &self.chart, "--values", &upstream(), image];
        self.must(&[&install[..], values, &["--wait", "--timeout=8m"]].concat());
    }

    fn helm(&self, arguments: &[&str]) -> Output {
        let helm = std::env::var("HELM").unwrap_or_else(|_| "helm".into());
        let mut command = Command::new(helm);
        command.args(arguments).args(["--namespace", "default"]);
        command
            .env("KUBECONFIG", self.kubectl.kubeconfig())
            .output()
            .unwrap()
    }

    fn must(&self, arguments: &[&str]) {
        let output = self.helm(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{arguments:?}: {error}\n{}",
            self.state()
        );
    }

    /// What explains why managers do not run.
    fn state(&self) -> String {
        let (pods, _) = self.system.attempt(&["describe", "pods"], "").unwrap();
        let logs = ["logs", "--selector", MANAGERS, "--tail=50", "--prefix"];
        let (logs, _) = self.system.attempt(&logs, "").unwrap();
        pods + &logs
    }

    /// The managers that are not going away.
    fn managers(&self) -> Vec<Value> {
        let mut pods = self.system.list("pods", MANAGERS).unwrap();
        pods.retain(|pod| pod.pointer("/metadata/deletionTimestamp").is_none());
        pods
    }

    /// Names of what a release leaves in the cluster, beside definitions and the namespace of copied secrets.
    fn leftovers(&self) -> Vec<String> {
        let kinds = "clusterroles,clusterrolebindings,priorityclasses,namespaces,mutatingwebhookconfigurations,\
                     validatingwebhookconfigurations";
        let listed = self.kubectl.run(&["get", kinds, "--output=name"]).unwrap();
        let ours = listed
            .lines()
            .filter(|name| name.contains("kruise") && *name != COPIES);
        ours.map(str::to_owned).collect()
    }

    fn definitions(&self) -> Vec<String> {
        let listed = self.kubectl.run(&["get", "crds", "--output=name"]).unwrap();
        listed.lines().map(str::to_owned).collect()
    }

    /// Nobody converts any more: nothing may wait for that.
    fn delete_definitions(&self) {
        let definitions = self.definitions();
        let names: Vec<&str> = definitions.iter().map(String::as_str).collect();
        let delete = [&["delete", "--timeout=5m"][..], &names].concat();
        self.kubectl.run(&delete).unwrap();
    }
}

/// Where the container runtime of the cluster's node has its socket, which is not below `/var/run`.
fn socket() -> [String; 4] {
    let node = PathBuf::from(variable("KRUISE_E2E_DIR")).join("nodes").join(NODE);
    let folder = format!("daemon.socketLocation={}", node.display());
    [
        "--set".into(),
        folder,
        "--set".into(),
        "daemon.socketFile=containerd.sock".into(),
    ]
}

/// The values of OpenKruise's chart with their defaults.
fn upstream() -> String {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kruise/tests/data/chart/upstream-values.yaml");
    path.display().to_string()
}

#[test]
#[ignore = "needs Helm and a real node: cargo xtask e2e --chart"]
fn helm_installs_managers_that_update_a_pod_in_place_and_uninstalls_them_when_nothing_needs_them() {
    let lab = Lab::new();
    assert_eq!(lab.definitions(), [""; 0], "the cluster has had nothing of ours");
    let socket = socket();
    lab.install(&socket.each_ref().map(String::as_str));
    let managers = lab.managers();
    assert_eq!(managers.len(), 2);
    for manager in &managers {
        let status = &manager["status"]["containerStatuses"][0];
        assert_eq!(status["restartCount"], 0, "{}", lab.state());
        assert!(text(status, "/imageID").contains("lab.test/kruise@sha256:"));
    }
    until_the_agent_runs(&lab);
    restart_restricted(&lab, &managers);
    until_webhooks_answer(lab.kubectl.kubeconfig()).unwrap();
    update_in_place(&lab);

    let refused = lab.helm(&["uninstall", "kruise", "--timeout=5m"]);
    assert!(!refused.status.success(), "a CloneSet needs its manager");
    assert_eq!(lab.managers().len(), 2);
    lab.kubectl.run(&["delete", "namespace", "from-nothing"]).unwrap();
    lab.must(&["uninstall", "kruise", "--timeout=5m"]);
    wait::until_true("nothing of the release is left", wait::QUIET, || {
        Ok(lab.leftovers().is_empty())
    })
    .unwrap();
    assert_eq!(lab.definitions().len(), 18);
    // Helm leaves it, because secrets of others may be in it.
    lab.kubectl.run(&["delete", COPIES]).unwrap();
    lab.delete_definitions();
}

#[test]
#[ignore = "needs Helm and a real node: cargo xtask e2e --chart"]
fn clonesets_alone_are_updated_under_the_rights_of_their_chart() {
    let lab = Lab::new();
    assert_eq!(lab.definitions(), [""; 0], "the cluster has nothing of ours");
    lab.install(&["--set", "installation.only=clonesets"]);
    let definition = "customresourcedefinition.apiextensions.k8s.io/clonesets.apps.kruise.io";
    assert_eq!(lab.definitions(), [definition]);
    until_webhooks_answer(lab.kubectl.kubeconfig()).unwrap();
    update_in_place(&lab);
    let logs = ["logs", "--selector", MANAGERS, "--tail=-1"];
    let logs = lab.system.run(&logs).unwrap().to_lowercase();
    assert!(logs.contains("rollout ended"), "{logs}");
    assert!(!logs.contains("forbidden"), "{logs}");
    lab.kubectl.run(&["delete", "namespace", "from-nothing"]).unwrap();
    lab.must(&["uninstall", "kruise", "--timeout=5m"]);
    wait::until_true("nothing of the release is left", wait::QUIET, || {
        Ok(lab.leftovers().is_empty())
    })
    .unwrap();
    lab.delete_definitions();
}

/// Waits for the agent of the node: Helm does not, because its DaemonSet may have one pod that is unavailable.
fn until_the_agent_runs(lab: &Lab) {
    wait::until_true("the agent is ready", LIMIT, || {
        let agents = lab.system.list("pods", AGENTS)?;
        Ok(agents.len() == 1 && agents[0]["status"]["containerStatuses"][0]["ready"] == true)
    })
    .unwrap_or_else(|error| panic!("{error:#}\n{}", lab.state()));
}

/// Pod Security lets nothing but "restricted" into the namespace, and all managers are replaced. The agent is in
/// the network of its node and opens the socket of a runtime, so it cannot be restricted; it runs on.
fn restart_restricted(lab: &Lab, before: &[Value]) {
    let label = [
        "label",
        "namespace",
        SYSTEM,
        "pod-security.kubernetes.io/enforce=restricted",
    ];
    let (_, warnings) = lab.kubectl.attempt(&label, "").unwrap();
    let of_managers = warnings
        .lines()
        .filter(|line| line.contains("kruise-controller-manager"));
    let of_managers: Vec<&str> = of_managers.collect();
    assert_eq!(of_managers, [""; 0], "managers that run would be refused");
    assert!(warnings.contains("kruise-daemon"), "{warnings}");
    lab.system.run(&["rollout", "restart", DEPLOYMENT]).unwrap();
    let status = lab.system.run(&["rollout", "status", DEPLOYMENT, "--timeout=8m"]);
    status.unwrap_or_else(|error| panic!("{error:#}\n{}", lab.state()));
    let uids =
        |pods: &[Value]| -> Vec<String> { pods.iter().map(|pod| text(pod, "/metadata/uid")).collect() };
    let before = uids(before);
    wait::until_true("only new managers run", LIMIT, || {
        let now = uids(&lab.managers());
        Ok(now.len() == 2 && now.iter().all(|uid| !before.contains(uid)))
    })
    .unwrap();
}

/// A CloneSet's pod gets another image and stays the same pod.
fn update_in_place(lab: &Lab) {
    lab.kubectl.run(&["create", "namespace", "from-nothing"]).unwrap();
    let kubectl = lab.kubectl.in_namespace("from-nothing");
    kubectl.apply(&web_of(1, &server_and_neighbour(WEB))).unwrap();
    let until_updated = || {
        wait::until_true("the pod is updated and in service", LIMIT, || {
            let set = kubectl.get("clonesets", "web")?;
            let current = set.pointer("/status/observedGeneration") == set.pointer("/metadata/generation");
            Ok(current && set["status"]["updatedReadyReplicas"] == 1)
        })
        .unwrap_or_else(|error| panic!("{error:#}\n{}", lab.state()));
        let mut pods = kubectl.list("pods", "app=web").unwrap();
        assert_eq!(pods.len(), 1);
        pods.remove(0)
    };
    let before = until_updated();
    assert_eq!(version(&before).as_deref(), Some("1"));
    let patch = containers(&server_and_neighbour("lab.test/web:2"));
    kubectl.patch("clonesets", "web", &patch).unwrap();
    let after = until_updated();
    assert_eq!(identity(&after), identity(&before));
    assert_eq!(version(&after).as_deref(), Some("2"));
}
