//! Keys: the nodes whose NodePodProbes a change enqueues.

use std::{collections::BTreeSet, sync::Arc};

use kruise_api::podprobemarker::PodProbeMarker;
use kruise_views::{ConditionView, NodeView, PodView};
use kube_cache::{Delta, ObjectKey};

use crate::probes::{CachedMarker, CachedProbes};

/// Conditions that kubelets and workloads write, and no probe.
const NATIVE: [&str; 8] = [
    "PodScheduled",
    "PodReadyToStartContainers",
    "Initialized",
    "ContainersReady",
    "Ready",
    "DisruptionTarget",
    "InPlaceUpdateReady",
    "KruisePodReady",
];

/// The node, if the change is one that a plan reads. Readiness counts until the node has a NodePodProbe.
pub(super) fn of_node(delta: &Delta<NodeView>, has_probes: &dyn Fn(&str) -> bool) -> Option<ObjectKey> {
    let node = delta.latest()?;
    let is_read = match (&delta.old, &delta.new) {
        (Some(old), Some(new)) => {
            old.uid != new.uid
                || old.deleting != new.deleting
                || old.is_virtual() != new.is_virtual()
                || (old.ready != new.ready && !has_probes(&node.name))
        }
        _ => true,
    };
    is_read.then(|| ObjectKey::of(&**node))
}

/// The node of a pod that it lists, if the change is one that a plan reads.
pub(super) fn of_pod(
    delta: &Delta<PodView>,
    of_node: &dyn Fn(&str) -> Option<Arc<CachedProbes>>,
) -> Option<ObjectKey> {
    let pod = delta.latest()?;
    let node = pod.node.as_deref().filter(|_| is_read(delta))?;
    let probes = of_node(node)?;
    let probes = probes.object.as_ref().ok()?;
    let mut entries = probes.pods.iter();
    let is_listed = entries.any(|entry| entry.name == *pod.name && entry.namespace == *pod.namespace);
    is_listed.then(|| ObjectKey::new("", node))
}

fn is_read(delta: &Delta<PodView>) -> bool {
    let (Some(old), Some(new)) = (&delta.old, &delta.new) else {
        return delta.new.is_none();
    };
    old.uid != new.uid
        || old.is_active() != new.is_active()
        || old.labels != new.labels
        || old.annotation_prints != new.annotation_prints
        || !reported(old).eq(reported(new))
}

/// The conditions that probes may write.
fn reported(pod: &PodView) -> impl Iterator<Item = &ConditionView> {
    let conditions = pod.conditions.iter();
    conditions.filter(|condition| !NATIVE.contains(&&*condition.kind))
}

/// The nodes that have probes of a marker which begins, changes or ends.
pub(super) fn of_marker(
    delta: &Delta<CachedMarker>,
    with_probes: &dyn Fn(&CachedMarker) -> Vec<Arc<CachedProbes>>,
) -> BTreeSet<ObjectKey> {
    let Some(marker) = delta.latest() else {
        return BTreeSet::new();
    };
    let parsed = |cached: &Option<Arc<CachedMarker>>| cached.as_ref()?.object.as_ref().ok().cloned();
    let is_same = match (parsed(&delta.old), parsed(&delta.new)) {
        (Some(old), Some(new)) => means_the_same(&old, &new),
        _ => false,
    };
    if is_same {
        return BTreeSet::new();
    }
    let nodes = with_probes(marker);
    nodes.iter().map(|node| ObjectKey::of(&**node)).collect()
}

fn means_the_same(old: &PodProbeMarker, new: &PodProbeMarker) -> bool {
    let is_going = |marker: &PodProbeMarker| marker.metadata.deletion_timestamp.is_some();
    old.metadata.uid == new.metadata.uid && is_going(old) == is_going(new) && old.spec == new.spec
}
