//! Keys: the SidecarSets that a change of an object enqueues.

use std::sync::Arc;

use kruise_plan_kit::sidecars::names;
use kruise_views::{NamespaceView, PodView, RevisionView};
use kube_cache::{Delta, ObjectKey};

use super::CachedSidecarSet;

/// The sets injected into a pod, before or after the change.
pub fn of_pod(delta: &Delta<PodView>) -> Vec<ObjectKey> {
    let mut sets: Vec<ObjectKey> = delta
        .old
        .iter()
        .chain(&delta.new)
        .flat_map(|pod| injected(pod))
        .map(|name| ObjectKey::new("", name))
        .collect();
    sets.sort();
    sets.dedup();
    sets
}

/// Names of the sets injected into a pod.
pub fn injected(pod: &PodView) -> impl Iterator<Item = &str> {
    let list = pod.annotations.get(names::INJECTED_LIST).unwrap_or_default();
    list.split(',').filter(|name| !name.is_empty())
}

/// The set of a revision.
pub fn of_revision(revision: &RevisionView) -> Option<ObjectKey> {
    let name = revision.labels.get(names::SET_NAME)?;
    Some(ObjectKey::new("", name))
}

/// The sets with a namespace selector, if the labels of a namespace changed. A new namespace enqueues them, too,
/// because its pods may have been cached before it. A deleted one enqueues none, because it has no pods.
pub fn of_namespace(delta: &Delta<NamespaceView>, sets: &[Arc<CachedSidecarSet>]) -> Vec<ObjectKey> {
    let Some(new) = &delta.new else {
        return Vec::new();
    };
    if delta.old.as_ref().is_some_and(|old| old.labels() == new.labels()) {
        return Vec::new();
    }
    let sets = sets.iter().filter(|set| set.set.matcher.namespaces.is_some());
    sets.map(|set| ObjectKey::of(&**set)).collect()
}
