//! On nodes that run containers: what only a kubelet and processes can show. `cargo xtask e2e --real-nodes`.
//!
//! The nodes are on this machine, and so are their containers: requests go to the addresses of pods, and processes
//! are known by the numbers that containerd reports.

mod agent;
mod daemonset;
mod environment;
mod ephemeral;
mod hooks;
mod in_place;
mod kubelet;
mod launch;
mod locked;
mod order;
mod passwords;
mod probes;
mod recreate;
mod resize;
mod restart;
pub(crate) mod runtime;
mod sidecars;
mod statefulset;
mod terminator;
mod timing;

use serde_json::{Value, json};

use crate::cluster::{Scenario, scenario, scenario_alone, scenario_gated, text, variable};
use runtime::Runtime;

/// Serves its version; `:2`, `:3` and `:two`, another name of `:2`, are the others.
pub(crate) const WEB: &str = "lab.test/web:1";
/// Has a shell, and does nothing by itself.
const TOOL: &str = "lab.test/tool:1";

/// A namespace on nodes that run containers.
struct OnNodes {
    scenario: Scenario,
    runtime: Runtime,
}

/// As [`scenario`], on real nodes.
fn on_nodes(namespace: &str) -> OnNodes {
    on_nodes_by(namespace, scenario)
}

/// As [`on_nodes`], with a manager whose feature gates are on.
fn on_nodes_gated(namespace: &str) -> OnNodes {
    on_nodes_by(namespace, scenario_gated)
}

/// As [`on_nodes`], while no other scenario runs.
fn on_nodes_alone(namespace: &str) -> OnNodes {
    on_nodes_by(namespace, scenario_alone)
}

fn on_nodes_by(namespace: &str, begin: impl FnOnce(&str) -> Scenario) -> OnNodes {
    let folder = variable("KRUISE_E2E_REAL_NODES").into();
    OnNodes {
        scenario: begin(namespace),
        runtime: Runtime { folder },
    }
}

impl OnNodes {
    /// The only pod of `web`.
    fn pod(&self) -> Value {
        let mut pods = self.scenario.pods();
        assert_eq!(pods.len(), 1, "{pods:?}");
        pods.remove(0)
    }

    /// Waits until every one of so many pods is updated and in service.
    fn until_updated(&self, replicas: u32) {
        self.scenario
            .until_status(&json!({"replicas": replicas, "updatedReadyReplicas": replicas}));
    }
}

/// A `v1alpha1` CloneSet `web` with these containers, one pod of which may be out of service.
pub(crate) fn web_of(replicas: u32, containers: &Value) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "CloneSet",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "updateStrategy": {"type": "InPlaceIfPossible", "maxUnavailable": 1},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"terminationGracePeriodSeconds": 5, "containers": containers},
            },
        },
    })
}

/// A server of this image, and a neighbour that never changes.
pub(crate) fn server_and_neighbour(image: &str) -> Value {
    json!([{"name": "main", "image": image}, {"name": "neighbour", "image": TOOL}])
}

/// A patch of all containers.
pub(crate) fn containers(containers: &Value) -> Value {
    json!({"spec": {"template": {"spec": {"containers": containers}}}})
}

/// The status of one container.
fn status_of<'a>(pod: &'a Value, container: &str) -> &'a Value {
    let statuses = pod["status"]["containerStatuses"]
        .as_array()
        .into_iter()
        .flatten();
    statuses
        .into_iter()
        .find(|status| status["name"] == container)
        .unwrap_or(&Value::Null)
}

/// What makes a pod the same one to others.
pub(crate) fn identity(pod: &Value) -> [String; 3] {
    ["/metadata/uid", "/status/podIP", "/spec/nodeName"].map(|pointer| text(pod, pointer))
}
