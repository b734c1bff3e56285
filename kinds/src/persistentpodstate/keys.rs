//! Keys: the PersistentPodStates that a change of something else enqueues. A key may be the name of one that is yet
//! to be generated.

use std::{collections::BTreeSet, sync::Arc};

use kruise_api::names::conditions::READY;
use kruise_plan_kit::workloads::{AllowedKind, Workload};
use kruise_views::{NodeView, PodView, WorkloadView};
use kube_cache::{Delta, ObjectKey};

use super::cached::{CachedPodState, target_of};

/// The PersistentPodStates that are for a workload.
pub(super) type ForWorkload<'a> = &'a dyn Fn(&str, &Workload) -> Vec<Arc<CachedPodState>>;

/// Itself; and once it comes or goes, the one of the name of its target, which may have waited for that.
pub(super) fn of_state(delta: &Delta<CachedPodState>) -> BTreeSet<ObjectKey> {
    let Some(state) = delta.latest() else {
        return BTreeSet::new();
    };
    let mut keys = BTreeSet::from([ObjectKey::of(&**state)]);
    if let Ok(state) = &state.object
        && (delta.old.is_none() || delta.new.is_none())
    {
        let target = target_of(state);
        keys.insert(ObjectKey::new(
            state.metadata.namespace.as_str(),
            target.name.as_str(),
        ));
    }
    keys
}

/// Those that are for a workload which came, went, is scaled or numbered otherwise, or has other annotations; and
/// the one of its name, if its annotations say or said something of one.
pub(super) fn of_workload<T>(
    (group, kind): (&str, &str),
    delta: &Delta<T>,
    view: impl Fn(&T) -> WorkloadView,
    states: ForWorkload<'_>,
) -> BTreeSet<ObjectKey> {
    let seen = |object: &Arc<T>| {
        let view = view(object);
        let scale = (view.deleting, view.replicas, view.numbering);
        (view.uid, scale, view.annotations)
    };
    let (old, new) = (delta.old.as_ref().map(seen), delta.new.as_ref().map(seen));
    let Some(latest) = delta.latest().filter(|_| old != new) else {
        return BTreeSet::new();
    };
    let latest = view(latest);
    let workload = Workload::new(group, kind, &latest.name);
    let targeting = states(&latest.namespace, &workload);
    let mut keys: BTreeSet<ObjectKey> = targeting.iter().map(|state| ObjectKey::of(&**state)).collect();
    if old
        .iter()
        .chain(&new)
        .any(|(_, _, annotations)| !annotations.is_empty())
    {
        keys.insert(ObjectKey::new(&*latest.namespace, &*latest.name));
    }
    keys
}

/// Those that are for the workload of a pod which came, went, is being deleted, becomes Ready, or has other
/// annotations where some are recorded. For a workload of a kind that administrators list, the one of its name,
/// too.
pub(super) fn of_pod(
    delta: &Delta<PodView>,
    allowed: &[AllowedKind],
    states: ForWorkload<'_>,
) -> BTreeSet<ObjectKey> {
    let Some(pod) = delta.latest() else {
        return BTreeSet::new();
    };
    let Some(controller) = pod.controller.as_deref() else {
        return BTreeSet::new();
    };
    let stays = delta.old.as_ref().zip(delta.new.as_ref());
    let has_changed = stays.is_none_or(|(old, new)| {
        let seen = |pod: &PodView| (pod.deleting, pod.node.clone(), pod.is_active());
        seen(old) != seen(new) || (!old.is_true(READY) && new.is_true(READY))
    });
    let is_annotated = stays.is_some_and(|(old, new)| old.annotation_prints != new.annotation_prints);
    if !has_changed && !is_annotated {
        return BTreeSet::new();
    }
    let workload = Workload::from(controller);
    let records_annotations = |state: &&Arc<CachedPodState>| {
        let state = state.object.as_ref();
        state.is_ok_and(|state| !state.spec.persistent_pod_annotations.is_empty())
    };
    let targeting = states(&pod.namespace, &workload);
    let targeting = targeting
        .iter()
        .filter(|state| has_changed || records_annotations(state));
    let mut keys: BTreeSet<ObjectKey> = targeting.map(|state| ObjectKey::of(&**state)).collect();
    if has_changed && is_allowed(allowed, &workload) {
        keys.insert(ObjectKey::new(&*pod.namespace, workload.name.as_str()));
    }
    keys
}

/// Those that record a node which comes, or whose labels change, where the change is one of labels that they
/// record. Most updates of nodes change no label.
pub(super) fn of_node(
    delta: &Delta<NodeView>,
    all: &dyn Fn() -> Vec<Arc<CachedPodState>>,
) -> BTreeSet<ObjectKey> {
    let Some(node) = &delta.new else {
        return BTreeSet::new();
    };
    let before = delta.old.as_ref().map(|old| &old.labels);
    if before == Some(&node.labels) {
        return BTreeSet::new();
    }
    let has_changed = |key: &str| before.and_then(|labels| labels.get(key)) != node.labels.get(key);
    let records = |state: &&Arc<CachedPodState>| {
        state.object.as_ref().is_ok_and(|state| {
            let mut recorded = state.status.pod_states.values();
            state.spec.topology_keys().any(has_changed) && recorded.any(|one| *one.node_name == *node.name)
        })
    };
    let states = all();
    states
        .iter()
        .filter(records)
        .map(|state| ObjectKey::of(&**state))
        .collect()
}

/// Is the workload of a kind that administrators list?
pub(super) fn is_allowed(allowed: &[AllowedKind], workload: &Workload) -> bool {
    allowed
        .iter()
        .any(|one| (&*one.group, &*one.kind) == workload.group_kind())
}
