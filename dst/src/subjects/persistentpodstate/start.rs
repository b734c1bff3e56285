//! A PersistentPodState as users create it, and what they do to it.

use crate::rules::prelude::*;
use crate::subjects::statefulset::start::STATEFULSETS;

pub const NAME: &str = "persistentpodstate";
pub const STATES: Resource = Resource::kruise("persistentpodstates", "PersistentPodState");
/// Name of the one that users create.
pub const OBJECT: &str = "places";
/// Name of the StatefulSet, of the one that its annotations ask for, and of one that somebody else makes.
pub const WORKLOAD: &str = "web";
/// Label of nodes that somebody gives them a while after they have registered.
pub const ZONE: &str = "zone";
/// Label of nodes that they have from the first on.
pub const HOST: &str = "kubernetes.io/hostname";
/// The annotation of pods that is recorded. Updates in place change it.
pub const TEAM: &str = "team";

/// A PersistentPodState of StatefulSet `web`, as it is when it is created.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Keys of labels that the new node of a pod must have.
    pub required: Keys,
    /// Keys of labels that it should have.
    pub preferred: Keys,
    /// Are records kept of pods that are scaled in?
    pub keeps: bool,
    /// Is an annotation of pods recorded?
    pub annotated: bool,
    /// Do annotations of the workload ask for it? Otherwise users create it.
    pub asked: bool,
    /// Does it exist at first? Otherwise a step creates it.
    pub at_first: bool,
}

/// Keys of labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Keys {
    /// None.
    None,
    /// The zone.
    Zone,
    /// The node itself.
    Host,
    /// Both.
    Both,
}

impl Keys {
    /// As they are written.
    pub fn list(self) -> &'static [&'static str] {
        match self {
            Self::None => &[],
            Self::Zone => &[ZONE],
            Self::Host => &[HOST],
            Self::Both => &[ZONE, HOST],
        }
    }

    /// As annotations have them; none for none.
    fn joined(self) -> Option<String> {
        (self != Self::None).then(|| self.list().join(","))
    }
}

/// `requiredPersistentTopology` and `preferredPersistentTopology`.
pub fn topology(required: Keys, preferred: Keys) -> Value {
    let keys = |keys: Keys| (keys != Keys::None).then(|| json!({"keys": keys.list()}));
    let preferred = keys(preferred).map(|keys| json!([{"weight": 10, "preference": keys}]));
    json!({"requiredPersistentTopology": keys(required), "preferredPersistentTopology": preferred})
}

/// The PersistentPodState that users create.
pub fn manifest(start: &Start) -> Value {
    let mut spec = topology(start.required, start.preferred);
    spec["targetRef"] =
        json!({"apiVersion": STATEFULSETS.api_version(), "kind": STATEFULSETS.kind, "name": WORKLOAD});
    let policy = if start.keeps { "WhenDeleted" } else { "WhenScaled" };
    spec["persistentPodStateRetentionPolicy"] = policy.into();
    if start.annotated {
        spec["persistentPodAnnotations"] = json!([{"key": TEAM}]);
    }
    object(OBJECT, spec)
}

/// One of somebody else, of the name that a generated one has. It is of a StatefulSet of Kubernetes that does not
/// exist.
pub fn foreign() -> Value {
    let mut spec = topology(Keys::Zone, Keys::None);
    spec["targetRef"] = json!({"apiVersion": "apps/v1", "kind": STATEFULSETS.kind, "name": WORKLOAD});
    object(WORKLOAD, spec)
}

fn object(name: &str, mut spec: Value) -> Value {
    if let Some(members) = spec.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    json!({"apiVersion": STATES.api_version(), "kind": STATES.kind,
        "metadata": {"name": name, "namespace": "default"}, "spec": spec})
}

/// The annotations of a workload that ask for one.
pub fn asking(required: Keys, preferred: Keys, annotated: bool) -> Value {
    json!({"metadata": {"annotations": {
        "kruise.io/auto-generate-persistent-pod-state": "true",
        "kruise.io/required-persistent-topology": required.joined(),
        "kruise.io/preferred-persistent-topology": preferred.joined(),
        "kruise.io/persistent-pod-annotations": annotated.then_some(TEAM),
    }}})
}

/// The annotation that asks for none any more.
pub fn withdrawn() -> Value {
    json!({"metadata": {"annotations": {"kruise.io/auto-generate-persistent-pod-state": "false"}}})
}

/// The zone of a node.
pub fn zone(node: &str) -> &'static str {
    if node == "n1" { "a" } else { "b" }
}

/// Something that a user does.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Edit {
    /// Creates the PersistentPodState; means nothing if it is there.
    Create,
    /// Deletes it.
    Delete,
    /// Gives it other required and preferred keys. Never none of both.
    Keys(Keys, Keys),
    /// Has the workload ask for one with these keys. Never none of both.
    Ask(Keys, Keys),
    /// Has the workload ask for none.
    Withdraw,
    /// Gives the one of the workload's name other required keys, whoever made it.
    Spoil(Keys),
    /// Deletes it, whoever made it.
    Remove,
    /// Creates another one of that name; means nothing if it is there.
    Foreign,
    /// Takes the label of its zone from a node, until somebody gives it back.
    Unlabel(u8),
}
