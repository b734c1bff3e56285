//! What a kubelet tells of its node: whether it answers.

use serde::Deserialize;

/// A node.
#[derive(Debug, Deserialize)]
pub(super) struct Node {
    pub(super) metadata: Meta,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Meta {
    #[serde(default)]
    namespace: Box<str>,
    pub(super) name: Box<str>,
    pub(super) uid: Box<str>,
    resource_version: Box<str>,
}

#[derive(Debug, Default, Deserialize)]
struct Status {
    #[serde(default)]
    conditions: Option<Vec<Condition>>,
}

#[derive(Debug, Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: Box<str>,
    #[serde(default)]
    status: Box<str>,
}

kube_cache::cached!(Node, metadata);

impl Node {
    /// Does what runs on it act? Not while its condition `Ready` is `Unknown`; the kubelets of a playground do as much.
    pub(super) fn answers(&self) -> bool {
        let mut conditions = self.status.conditions.iter().flatten();
        !conditions.any(|one| &*one.kind == "Ready" && &*one.status == "Unknown")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Node;

    fn answers(status: Value) -> bool {
        let metadata = json!({"name": "n", "uid": "u", "resourceVersion": "1"});
        let node = json!({"metadata": metadata, "status": status});
        serde_json::from_value::<Node>(node).unwrap().answers()
    }

    #[test]
    fn a_node_answers_unless_its_readiness_is_unknown() {
        let with =
            |kind: &str, status: &str| answers(json!({"conditions": [{"type": kind, "status": status}]}));
        assert!(answers(json!({})) && answers(json!({"conditions": null})));
        assert!(with("Ready", "True") && with("Ready", "False") && with("DiskPressure", "Unknown"));
        assert!(!with("Ready", "Unknown"));
    }
}
