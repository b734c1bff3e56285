//! How a new pod comes to its node.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kruise_views::PodView;
use serde_json::{Value, json};

/// Nodes and pods are read one after the other: a pod that is for an unknown node may be newer than what is known
/// of nodes.
const YOUNG: SignedDuration = SignedDuration::from_secs(10);

/// How long it is until a pod counts as one that waits for a node which does not exist; `None` if it does now.
pub fn may_be_news(pod: &PodView, now: Timestamp) -> Option<Duration> {
    let left = YOUNG - now.duration_since(pod.created?);
    left.is_positive().then(|| left.unsigned_abs())
}

/// Where a new pod says which node it is for.
const REQUIRED: [&str; 4] = [
    "spec",
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
];
/// The same, as a pointer.
const POINTER: &str = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution";

/// How a new pod comes to its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// Its required node affinity, whatever the template says there, names the node, and the scheduler binds it.
    Scheduler,
    /// It is created bound.
    Direct,
}

impl Binding {
    /// As a flag says it.
    pub fn by_scheduler(flag: bool) -> Self {
        if flag { Self::Scheduler } else { Self::Direct }
    }

    /// Makes room in a pod for what [`Self::member`] names.
    pub fn prepare(self, pod: &mut Value) {
        if self == Self::Scheduler {
            make_objects(pod, &REQUIRED);
        }
    }

    /// The member of a pod that says which node it is for, as pointer and value.
    pub fn member(self, node: &str) -> (&'static str, Value) {
        if self == Self::Direct {
            return ("/spec/nodeName", node.into());
        }
        let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
        (POINTER, json!({"nodeSelectorTerms": [{"matchFields": [field]}]}))
    }
}

/// Makes an object of each member on the way to the last of the path: a template may have null there.
fn make_objects(value: &mut Value, path: &[&str]) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    if !value.is_object() {
        *value = json!({});
    }
    if let Some(members) = value.as_object_mut()
        && !rest.is_empty()
    {
        make_objects(members.entry(*first).or_insert(Value::Null), rest);
    }
}
