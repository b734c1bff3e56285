//! A node: what decides which pods may run on it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kruise_api::names::containerrecreaterequest::{NODE_TYPE, VIRTUAL_KUBELET};
use kube_cache::Cached;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::{Labels, amount};

/// Identity, labels, taints, room and readiness of a node.
///
/// Most updates of a node change none of it: those of a heartbeat, or of the list of images. [`NodeView::is_same`]
/// finds them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeView {
    /// Name.
    pub name: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// Version of the stored object.
    pub resource_version: Box<str>,
    /// Labels, among them the topology keys.
    pub labels: Labels,
    /// Taints.
    pub taints: Box<[TaintView]>,
    /// Is it cordoned?
    pub unschedulable: bool,
    /// Is its condition `Ready` True?
    pub ready: bool,
    /// Since when it is ready, or is not.
    pub ready_since: Option<Timestamp>,
    /// Being deleted?
    pub deleting: bool,
    /// What it has for pods, by resource, in thousandths; sorted.
    pub allocatable: Box<[(Box<str>, i64)]>,
}

/// A taint of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct TaintView {
    /// Key.
    pub key: Box<str>,
    /// Value; empty when absent.
    #[serde(deserialize_with = "text")]
    pub value: Box<str>,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: Box<str>,
}

impl NodeView {
    /// Labels, among them the topology keys.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Is it a virtual node, which has no agent?
    pub fn is_virtual(&self) -> bool {
        self.labels.get(NODE_TYPE) == Some(VIRTUAL_KUBELET)
    }

    /// Do the two differ in their versions at most?
    pub fn is_same(&self, other: &Self) -> bool {
        self.uid == other.uid
            && self.unschedulable == other.unschedulable
            && self.ready == other.ready
            && self.ready_since == other.ready_since
            && self.deleting == other.deleting
            && self.taints == other.taints
            && self.labels == other.labels
            && self.allocatable == other.allocatable
    }

    /// What it has for pods of a resource, in thousandths; nothing if it does not say.
    pub fn room(&self, resource: &str) -> i64 {
        let mut all = self.allocatable.iter();
        all.find(|(name, _)| **name == *resource)
            .map_or(0, |(_, amount)| *amount)
    }
}

impl Cached for NodeView {
    fn namespace(&self) -> &'static str {
        ""
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn uid(&self) -> &str {
        &self.uid
    }

    fn resource_version(&self) -> &str {
        &self.resource_version
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Wire {
    metadata: Meta,
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Meta {
    name: Box<str>,
    uid: Box<str>,
    resource_version: Box<str>,
    labels: Labels,
    deletion_timestamp: Option<Timestamp>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    taints: Option<Box<[TaintView]>>,
    unschedulable: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    conditions: Option<Vec<Condition>>,
    allocatable: Option<BTreeMap<Box<str>, Value>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type")]
    kind: Box<str>,
    status: Box<str>,
    #[serde(rename = "lastTransitionTime")]
    since: Option<Timestamp>,
}

impl<'de> Deserialize<'de> for NodeView {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Wire {
            metadata,
            spec,
            status,
        } = Wire::deserialize(deserializer)?;
        let mut conditions = status.conditions.iter().flatten();
        let ready = conditions.find(|condition| &*condition.kind == "Ready");
        let room = status.allocatable.unwrap_or_default().into_iter();
        Ok(Self {
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            labels: metadata.labels,
            taints: spec.taints.unwrap_or_default(),
            unschedulable: spec.unschedulable.unwrap_or_default(),
            ready: ready.is_some_and(|condition| &*condition.status == "True"),
            ready_since: ready.and_then(|condition| condition.since),
            deleting: metadata.deletion_timestamp.is_some(),
            allocatable: room
                .filter_map(|(resource, quantity)| Some((resource, amount(&quantity)?)))
                .collect(),
        })
    }
}

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<str>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{NodeView, TaintView};

    fn node(change: impl FnOnce(&mut Value)) -> NodeView {
        let images: Vec<Value> = (0..50)
            .map(|n| json!({"names": [format!("registry/image-{n}")], "sizeBytes": n}))
            .collect();
        let mut node = json!({
            "metadata": {"name": "n1", "uid": "u", "resourceVersion": "7", "labels": {"zone": "a"}},
            "spec": {"podCIDR": "10.0.0.0/24", "taints": [{"key": "gpu", "effect": "NoSchedule"}]},
            "status": {"images": images, "allocatable": {"memory": "1Gi", "cpu": "1500m"}, "conditions": [
                {"type": "MemoryPressure", "status": "False", "lastHeartbeatTime": "2026-01-01T00:00:00Z"},
                {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}]},
        });
        change(&mut node);
        serde_json::from_str(&node.to_string()).unwrap()
    }

    #[test]
    fn what_decides_about_pods_is_read() {
        let node = node(|_| ());
        assert_eq!((&*node.name, node.unschedulable, node.ready), ("n1", false, true));
        assert_eq!(node.labels.get("zone"), Some("a"));
        let taint = TaintView {
            key: "gpu".into(),
            value: "".into(),
            effect: "NoSchedule".into(),
        };
        assert_eq!(*node.taints, [taint]);
        assert_eq!(
            ["cpu", "memory", "gpu"].map(|name| node.room(name)),
            [1500, 1000 << 30, 0]
        );
    }

    #[test]
    fn a_heartbeat_and_other_images_change_nothing() {
        let before = node(|_| ());
        let after = node(|node| {
            node["metadata"]["resourceVersion"] = json!("8");
            node["status"]["conditions"][1]["lastHeartbeatTime"] = json!("2026-01-01T00:00:10Z");
            node["status"]["images"] = json!([]);
        });
        assert!(before.is_same(&after) && before != after);
    }

    #[test]
    fn whatever_is_read_makes_a_difference() {
        let before = node(|_| ());
        let changes: [fn(&mut Value); 9] = [
            |node| node["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
            |node| node["status"]["conditions"][1]["lastTransitionTime"] = json!("2026-01-01T00:00:00Z"),
            |node| node["metadata"]["uid"] = json!("v"),
            |node| node["metadata"]["labels"]["zone"] = json!("b"),
            |node| node["spec"]["taints"] = Value::Null,
            |node| node["spec"]["taints"][0]["value"] = json!("x"),
            |node| node["spec"]["unschedulable"] = json!(true),
            |node| node["status"]["allocatable"]["cpu"] = json!("1"),
            |node| node["status"]["conditions"][1]["status"] = json!("Unknown"),
        ];
        for (index, change) in changes.into_iter().enumerate() {
            assert!(!before.is_same(&node(change)), "{index}");
        }
    }
}
