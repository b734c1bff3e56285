//! How a node comes up.

use serde_json::{Map, Value, json};

use super::kubelet::{Addresses, NEWEST};
use crate::object::{at, metadata_text, seconds};
use crate::world::Client;

/// The taint of nodes that are not ready, as admission puts it on new ones.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Conditions of a healthy node: type, status, reason, message.
const CONDITIONS: &[[&str; 4]] = &[
    [
        "MemoryPressure",
        "False",
        "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available",
    ],
    [
        "DiskPressure",
        "False",
        "KubeletHasNoDiskPressure",
        "kubelet has no disk pressure",
    ],
    [
        "PIDPressure",
        "False",
        "KubeletHasSufficientPID",
        "kubelet has sufficient PID available",
    ],
    ["Ready", "True", "KubeletReady", "kubelet is posting ready status"],
];

/// Reports a node's addresses, resources and conditions, and takes the taint of nodes that are not ready from it.
/// Resources and the version that were given stay; otherwise it is a machine of 32 CPUs, 256 GiB and 110 pods with
/// the version of the API.
pub(super) fn node(client: &mut Client<'_>, addresses: &mut Addresses, node: &Value) {
    let name = metadata_text(node, "name").to_owned();
    let path = format!("/api/v1/nodes/{name}");
    let status = status(&addresses.of_node(&name), node, &seconds(client.now));
    client.strategic(&format!("{path}/status"), &json!({"status": status}));
    let taints = node.pointer("/spec/taints").and_then(Value::as_array);
    let taints: Vec<&Value> = taints.into_iter().flatten().collect();
    let kept: Vec<&&Value> = taints
        .iter()
        .filter(|taint| taint.get("key") != Some(&NOT_READY.into()))
        .collect();
    if kept.len() < taints.len() {
        let user = "system:serviceaccount:kube-system:node-controller";
        let mut controller = Client {
            api: client.api,
            user,
            now: client.now,
        };
        controller.merge(&path, &json!({"spec": {"taints": kept}}));
    }
}

fn status(address: &str, node: &Value, now: &str) -> Map<String, Value> {
    let given = |name: &str| {
        node.pointer(&format!("/status/{name}"))
            .filter(|one| one.is_object())
            .cloned()
    };
    let machine = || json!({"cpu": "32", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "110"});
    let capacity = given("capacity")
        .or_else(|| given("allocatable"))
        .unwrap_or_else(machine);
    let allocatable = given("allocatable").unwrap_or_else(|| capacity.clone());
    let conditions: Vec<Value> = CONDITIONS
        .iter()
        .map(|[kind, status, reason, message]| {
            json!({"type": kind, "status": status, "reason": reason, "message": message,
                "lastHeartbeatTime": now, "lastTransitionTime": now})
        })
        .collect();
    let addresses = json!([
        {"type": "InternalIP", "address": address},
        {"type": "Hostname", "address": metadata_text(node, "name")},
    ]);
    let mut status = Map::new();
    status.insert("capacity".into(), capacity);
    status.insert("allocatable".into(), allocatable);
    status.insert("conditions".into(), conditions.into());
    status.insert("addresses".into(), addresses);
    let version = at(node, "/status/nodeInfo/kubeletVersion").and_then(Value::as_str);
    if version.is_none_or(str::is_empty) {
        status.insert("nodeInfo".into(), json!({"kubeletVersion": NEWEST}));
    }
    status
}
