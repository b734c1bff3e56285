//! Which SidecarSets a change of an object concerns.

use std::sync::Arc;

use kruise_plan_kit::sidecars::names;
use kruise_views::{NamespaceView, PodView, RevisionView};
use kube_cache::{Delta, ObjectKey};

use super::CachedSidecarSet;

/// The sets that a change of a pod concerns: those injected, before and after.
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

/// The set that a change of a revision concerns.
pub fn of_revision(revision: &RevisionView) -> Option<ObjectKey> {
    let name = revision.labels.get(names::SET_NAME)?;
    Some(ObjectKey::new("", name))
}

/// The sets that a change of a namespace may concern: those that look at labels, if its labels are other ones now. A new
/// one may have pods that were seen before it; one that is gone has none.
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
