//! A UnitedDeployment as users create it, and what they do then.

use crate::rules::prelude::*;

pub const NAME: &str = "uniteddeployment";
pub const UNITED: Resource = Resource::kruise("uniteddeployments", "UnitedDeployment");

/// Name of the UnitedDeployment.
pub const FLEET: &str = "fleet";
/// Name of the ConfigMap that controls what belongs to others.
pub const BOSS: &str = "boss";
/// The label with the subset of a workload.
pub const SUBSET: &str = "apps.kruise.io/subset-name";
/// The label with the revision of a workload, and of its pods.
pub const REVISION: &str = "apps.kruise.io/controller-revision-hash";

/// A subset of the topology: its number, and how many pods it is to have.
pub type Subset = (u8, Size);

/// How many pods a subset is to have.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Size {
    /// An equal share of what is left, or the rest.
    Free,
    /// `replicas`, a number or a percentage.
    Is(String),
    /// `minReplicas`, and `maxReplicas` if there are.
    Between(u32, Option<u32>),
}

/// A UnitedDeployment when it is created.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// `spec.replicas`.
    pub replicas: u32,
    /// The topology.
    pub subsets: Vec<Subset>,
    /// Its CloneSets recreate pods instead of updating them in place.
    pub recreates: bool,
    /// `spec.revisionHistoryLimit`.
    pub limit: u32,
}

impl Start {
    /// The UnitedDeployment.
    pub fn united(&self) -> Value {
        let policy = ["InPlaceIfPossible", "ReCreate"][usize::from(self.recreates)];
        let labels = json!({"app": FLEET});
        json!({"apiVersion": UNITED.api_version(), "kind": UNITED.kind,
        "metadata": {"name": FLEET, "namespace": "default"},
        "spec": {
            "replicas": self.replicas,
            "revisionHistoryLimit": self.limit,
            "selector": {"matchLabels": labels},
            "template": {"cloneSetTemplate": {
                "metadata": {"labels": labels},
                "spec": {
                    "selector": {"matchLabels": labels},
                    "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": policy}},
                    "template": {"metadata": {"labels": labels}, "spec": pods(1, 0)},
                },
            }},
            "topology": {"subsets": subsets(&self.subsets)},
        }})
    }
}

/// The specification of pods.
pub fn pods(image: u32, mode: u32) -> Value {
    json!({"terminationGracePeriodSeconds": 3, "containers": [
        {"name": "main", "image": format!("web:{image}"), "env": [{"name": "MODE", "value": mode.to_string()}]}]})
}

/// A topology as it is stored.
pub fn subsets(subsets: &[Subset]) -> Value {
    let subsets = subsets.iter().map(|(number, size)| {
        let name = subset(*number);
        match size {
            Size::Free => json!({"name": name}),
            Size::Is(replicas) => json!({"name": name, "replicas": int_or_string(replicas)}),
            Size::Between(min, None) => json!({"name": name, "minReplicas": min}),
            Size::Between(min, Some(max)) => json!({"name": name, "minReplicas": min, "maxReplicas": max}),
        }
    });
    subsets.collect()
}

/// The name of a subset.
pub fn subset(number: u8) -> String {
    format!("s{number}")
}

/// A CloneSet that belongs to somebody else, and looks like the workload of a subset.
pub fn foreign(number: u8, controller: &str) -> Value {
    let name = format!("foreign-{number}");
    let labels = json!({"app": FLEET, SUBSET: subset(number), REVISION: "none"});
    let own = json!({"app": name});
    json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet",
        "metadata": {"name": name, "namespace": "default", "labels": labels, "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": BOSS, "uid": controller, "controller": true}]},
        "spec": {"replicas": 1, "selector": {"matchLabels": own},
            "template": {"metadata": {"labels": own}, "spec": pods(9, 9)}}})
}

/// Something that a user does.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Edit {
    /// Another image, which pods take in place.
    Image(u32),
    /// Another value of an environment variable, which no pod takes in place.
    Env(u32),
    /// `replicas`, by the subresource, which no webhook reviews: subsets may name more than that.
    Scale(u32),
    /// Other subsets, without partitions.
    Topology(Vec<Subset>),
    /// So many pods of a subset stay at older revisions.
    Partition(u8, u32),
    /// No pods stay at older revisions.
    Everywhere,
    /// The replicas of the workload of a subset.
    ChildReplicas(u8, u32),
    /// Its partition.
    ChildPartition(u8, u32),
    /// It is deleted.
    DeleteChild(u8),
    /// Somebody else's workload with the label of a subset.
    Foreign(u8),
    /// The UnitedDeployment is deleted, with its workloads or without them, and created as it was at first.
    Replace(bool),
}
