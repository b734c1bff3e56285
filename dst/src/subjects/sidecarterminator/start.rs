//! Jobs whose pods have sidecars that end with their main containers.

use kruise_api::names::sidecarterminator::{
    SIDECAR_IGNORE_EXIT_CODE, TERMINATE_SIDECAR, TERMINATE_SIDECAR_WITH_IMAGE,
};

use crate::rules::prelude::*;
use crate::subjects::node_agents::AgentEdit;

pub const NAME: &str = "sidecarterminator";
/// The image that ends at once: `boot` has the stages that end its containers.
pub const ENDS: &str = "ends:1";
/// Name of the virtual node.
pub const VIRTUAL: &str = "v1";
/// The taint of virtual nodes.
const TAINT: &str = "virtual-kubelet.io/provider";
/// The label of virtual nodes.
const TYPE: [&str; 2] = ["type", "virtual-kubelet"];

/// The agents of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// An agent dies at this share of the stops of containers, in percent: before or after the runtime has answered.
    pub dying: u8,
}

/// A job when it is created.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Pods, side by side.
    pub pods: u8,
    /// `restartPolicy` is `Never`, and not `OnFailure`.
    pub never: bool,
    /// `backoffLimit`.
    pub limit: u8,
    /// Do its pods run on the virtual node?
    pub on_virtual: bool,
    /// The main containers, two at most.
    pub mains: Vec<Main>,
    /// The sidecars, two at most.
    pub sidecars: Vec<Sidecar>,
}

/// A main container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Main {
    /// How long it runs.
    pub seconds: u8,
    /// Its exit code.
    pub code: u8,
}

/// A sidecar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Sidecar {
    /// Its exit code does not count.
    pub ignored: bool,
    /// It does not handle the signal to end: its exit code is not 0.
    pub deaf: bool,
}

/// The virtual node.
pub fn virtual_node(mut node: Value) -> Value {
    let [label, value] = TYPE;
    node["metadata"]["labels"][label] = value.into();
    node["spec"] = json!({"taints": [{"key": TAINT, "effect": "NoSchedule"}]});
    node
}

impl Job {
    /// The job of this name.
    pub fn job(&self, name: &str) -> Value {
        let mains = self.mains.iter().enumerate().map(|(place, main)| {
            let command = format!("sleep {}; exit {}", main.seconds, main.code);
            // Crashes of the engine hit the first one.
            let name = ["main", "main-1"][place];
            json!({"name": name, "image": "report:1", "command": ["sh", "-c", command]})
        });
        let sidecars = self.sidecars.iter().enumerate();
        let sidecars = sidecars.map(|(place, sidecar)| sidecar.container(place));
        let mut spec = json!({
            "restartPolicy": if self.never { "Never" } else { "OnFailure" },
            "terminationGracePeriodSeconds": 2,
            "containers": mains.chain(sidecars).collect::<Vec<Value>>(),
        });
        let mut metadata = json!({"labels": {"app": "report"}});
        if self.on_virtual {
            metadata["annotations"] = json!({"dst/swapped": "ends"});
            let [label, value] = TYPE;
            spec["nodeSelector"] = json!({label: value});
            spec["tolerations"] = json!([{"key": TAINT, "operator": "Exists"}]);
        }
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default"},
            "spec": {"parallelism": self.pods, "completions": self.pods, "backoffLimit": self.limit,
                "template": {"metadata": metadata, "spec": spec}}})
    }
}

impl Sidecar {
    /// It has the variables for both kinds of node: which count, the node decides.
    fn container(self, place: usize) -> Value {
        let mut env = vec![
            json!({"name": TERMINATE_SIDECAR, "value": "true"}),
            json!({"name": TERMINATE_SIDECAR_WITH_IMAGE, "value": ENDS}),
        ];
        if self.ignored {
            env.push(json!({"name": SIDECAR_IGNORE_EXIT_CODE, "value": "true"}));
        }
        // A process that would come to an end by itself does not handle the signal.
        let sleeps = if self.deaf { "86400" } else { "infinity" };
        json!({"name": format!("log-{place}"), "image": "log:1", "command": ["sleep", sleeps], "env": env})
    }
}

/// Something that a user does.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Edit {
    /// A job is created.
    Job(Job),
    /// A job is deleted with its pods, one of those that there are.
    Delete(u8),
    /// Something happens to the agent of a node.
    Agent(u8, AgentEdit),
}
