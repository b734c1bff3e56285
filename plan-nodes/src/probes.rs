//! The write of the probes of a node, which two controllers make: one removes pods that are gone, the other sets
//! the probes of its marker.

use kruise_api::nodepodprobe::{NodePodProbe, PodProbes};
use kruise_plan_kit::{
    Intent, ObjectWrites, Part, Patch, Phase, Precondition, Target, Write, injected::is_injected,
};
use serde_json::{Value, json};

/// Pods that are gone, and probes that nobody wants, are removed from a node.
pub(crate) const TIDY_PROBES: Intent = Intent::of_update("tidy-probes");
/// A pod gets the conditions, labels and annotations that results of probes stand for.
pub(crate) const MARK_POD: Intent = Intent::of_update("mark-pod");

/// Where the NodePodProbe of a node is.
pub(crate) fn target(name: &str) -> Target {
    Target {
        resource: kruise_api::nodepodprobe::RESOURCE,
        namespace: String::new(),
        name: name.to_owned(),
    }
}

/// Replaces the list. It is right for the version that it was made from only: another write in between, by whichever
/// controller, must not be undone.
pub(crate) fn replace(
    node: &NodePodProbe,
    pods: &[PodProbes],
    intent: Intent,
    reason: impl Into<String>,
) -> ObjectWrites {
    // Strings, numbers and JSON always serialize.
    let list = serde_json::to_value(pods).unwrap_or_default();
    let list = if pods.is_empty() { Value::Null } else { list };
    let (uid, version) = (node.metadata.uid.clone(), node.metadata.resource_version.clone());
    let precondition = if intent == TIDY_PROBES && is_injected("ProbesOverwritten") {
        Precondition::Uid(uid)
    } else {
        Precondition::UidAndVersion(uid, version)
    };
    let write = Write::Patch {
        intent,
        target: target(&node.metadata.name),
        part: Part::Main,
        patch: Patch::Merge(json!({"spec": {"podProbes": list}})),
        precondition,
    };
    ObjectWrites::alone(Phase::Pods, write, reason)
}
