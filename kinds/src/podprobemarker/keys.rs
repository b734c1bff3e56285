//! Keys: the PodProbeMarkers that a change of something else enqueues.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kruise_api::{
    names::conditions::INITIALIZED,
    nodepodprobe::{NodePodProbe, PodProbes},
    podprobemarker::PodProbeMarker,
};
use kruise_views::{NodeView, PodView};
use kube_cache::{Delta, ObjectKey};

use crate::probes::{CachedMarker, CachedProbes};

/// The markers that select the pod, before or after a change that they read.
pub(super) fn of_pod(
    delta: &Delta<PodView>,
    marks_serverless: bool,
    markers: &dyn Fn(&str) -> Vec<Arc<CachedMarker>>,
) -> Vec<ObjectKey> {
    let Some(pod) = delta.latest().filter(|_| is_read(delta, marks_serverless)) else {
        return Vec::new();
    };
    let selects = |marker: &PodProbeMarker| {
        let mut pods = delta.old.iter().chain(&delta.new);
        pods.any(|pod| marker.spec.selector.matches_by(|key| pod.labels.get(key)))
    };
    let markers = markers(&pod.namespace);
    let concerned = markers
        .iter()
        .filter(|cached| cached.object.as_ref().is_ok_and(|marker| selects(marker)));
    concerned.map(|marker| ObjectKey::of(&**marker)).collect()
}

/// Did anything change that a plan reads?
fn is_read(delta: &Delta<PodView>, marks_serverless: bool) -> bool {
    let (Some(old), Some(new)) = (&delta.old, &delta.new) else {
        // What is on no node is not probed.
        return delta.latest().is_some_and(|pod| pod.node.is_some());
    };
    old.uid != new.uid
        || old.is_active() != new.is_active()
        || old.node != new.node
        || old.ip != new.ip
        || old.labels != new.labels
        || old.is_true(INITIALIZED) != new.is_true(INITIALIZED)
        || (marks_serverless
            && (old.conditions != new.conditions || old.annotation_prints != new.annotation_prints))
}

/// All markers if a node joins or leaves; otherwise those whose probes changed.
pub(super) fn of_probes(delta: &Delta<CachedProbes>, all: &dyn Fn() -> Vec<ObjectKey>) -> Vec<ObjectKey> {
    let read = |cached: &Option<Arc<CachedProbes>>| cached.as_ref()?.object.as_ref().ok().cloned();
    match (read(&delta.old), read(&delta.new)) {
        (Some(old), Some(new)) if old.metadata.uid == new.metadata.uid => changed(&old, &new),
        _ => all(),
    }
}

/// The markers of the pods whose entries differ.
fn changed(old: &NodePodProbe, new: &NodePodProbe) -> Vec<ObjectKey> {
    let by_uid = |node: &NodePodProbe| -> BTreeMap<String, PodProbes> {
        let pods = node.pods.iter().map(|pod| (pod.uid.clone(), pod.clone()));
        pods.collect()
    };
    if old.pods == new.pods {
        return Vec::new();
    }
    let (old, new) = (by_uid(old), by_uid(new));
    let differ = |uid: &&String| old.get(*uid) != new.get(*uid);
    let uids: BTreeSet<&String> = old.keys().chain(new.keys()).filter(differ).collect();
    let entries = uids
        .into_iter()
        .flat_map(|uid| old.get(uid).into_iter().chain(new.get(uid)));
    let markers: BTreeSet<(&str, &str)> = entries.flat_map(PodProbes::markers).collect();
    let keys = markers
        .into_iter()
        .map(|(namespace, name)| ObjectKey::new(namespace, name));
    keys.collect()
}

/// All markers, if a node joins or leaves, or becomes a virtual one.
pub(super) fn of_node(delta: &Delta<NodeView>, all: &dyn Fn() -> Vec<ObjectKey>) -> Vec<ObjectKey> {
    let is_same = matches!((&delta.old, &delta.new), (Some(old), Some(new))
        if old.uid == new.uid && old.deleting == new.deleting && old.is_virtual() == new.is_virtual());
    if is_same { Vec::new() } else { all() }
}
