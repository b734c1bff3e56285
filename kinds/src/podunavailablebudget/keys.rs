//! Keys: the budgets that a change of an object enqueues.

use std::{cell::Cell, sync::Arc};

use kruise_api::podunavailablebudget::PodUnavailableBudget;
use kruise_plan_kit::{
    ledger::{budget_of, covers},
    workloads::{Aspect, Chain, Known, Ownership, Source, Workload, chain, is_in_scale, wanted},
};
use kruise_runtime::parsed::Parsed;
use kruise_views::{OwnerView, PodView, WorkloadView};
use kube_cache::{Delta, ObjectKey, SharedInformer};

/// The budgets of a namespace.
pub(super) type All = [Arc<Parsed<PodUnavailableBudget>>];

/// The budget itself. If its specification changed, or if it appeared or went, the others of its namespace, too:
/// some of their pods may name it.
pub(super) fn of_budget(
    delta: &Delta<Parsed<PodUnavailableBudget>>,
    budgets: &SharedInformer<Parsed<PodUnavailableBudget>>,
) -> Vec<ObjectKey> {
    let Some(budget) = delta.latest() else {
        return Vec::new();
    };
    let key = ObjectKey::of(&**budget);
    let is_counted = |old: &Parsed<_>, new: &Parsed<_>| {
        old.metadata.uid == new.metadata.uid
            && old.metadata.generation == new.metadata.generation
            && old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
    };
    let others = match (&delta.old, &delta.new) {
        (Some(old), Some(new)) if is_counted(old, new) => Vec::new(),
        _ => budgets.snapshot().list(&key.namespace),
    };
    let others = others.iter().map(|other| ObjectKey::of(&**other));
    let mut keys: Vec<ObjectKey> = others.filter(|other| *other != key).collect();
    keys.push(key);
    keys
}

/// The budgets that a pod names or that cover it, before or after a change that they count.
pub(super) fn of_pod(delta: &Delta<PodView>, budgets: &All, known: Source<'_>) -> Vec<ObjectKey> {
    if budgets.is_empty() || !is_counted(delta) {
        return Vec::new();
    }
    let mut concerned: Vec<&Arc<Parsed<PodUnavailableBudget>>> = Vec::new();
    for pod in delta.new.iter().chain(&delta.old) {
        let owners = owners(pod, readable(budgets), known);
        let more = budgets.iter().filter(|budget| {
            let is_new = !concerned.iter().any(|have| Arc::ptr_eq(have, budget));
            is_new && is_of(budget, pod, &owners, known)
        });
        let more: Vec<_> = more.collect();
        concerned.extend(more);
    }
    concerned.iter().map(|budget| ObjectKey::of(&***budget)).collect()
}

/// Did anything change that a count reads?
fn is_counted(delta: &Delta<PodView>) -> bool {
    let (Some(old), Some(new)) = (&delta.old, &delta.new) else {
        return true;
    };
    if !old.is_active() && !new.is_active() {
        return false;
    }
    let same_version = PodView {
        resource_version: new.resource_version.clone(),
        ..PodView::clone(old)
    };
    same_version != **new
}

/// The owners of a pod, as far as one of these budgets may have them as its target: a kind without a cache costs a
/// request for each of its objects, and most budgets are for kinds that are never above such a one.
pub(super) fn owners<'b>(
    pod: &PodView,
    budgets: impl IntoIterator<Item = &'b PodUnavailableBudget>,
    known: Source<'_>,
) -> Chain {
    let Some(controller) = pod.controller.as_deref() else {
        return Chain::default();
    };
    let mut targets = budgets.into_iter().filter_map(target_of);
    let reads_any = targets.any(|target| !target.owns_pods_by_itself());
    let bounded = |workload: &Workload, aspect: Aspect| {
        if reads_any || workload.owns_pods_by_itself() {
            known(workload, aspect)
        } else {
            Known::Unreadable
        }
    };
    chain(controller, &bounded)
}

/// The budgets that can be read.
pub(super) fn readable(budgets: &All) -> impl Iterator<Item = &PodUnavailableBudget> {
    budgets.iter().filter_map(|one| one.object.as_ref().ok())
}

/// Does the pod name the budget, or may the budget cover it?
fn is_of(budget: &Parsed<PodUnavailableBudget>, pod: &PodView, owners: &Chain, known: Source<'_>) -> bool {
    let object = budget.object.as_ref();
    budget_of(pod) == Some(budget.metadata.name.as_str())
        || object.is_ok_and(|budget| may_cover(budget, pod, owners, known))
}

/// Does the budget cover a pod with these owners? True also if one that has yet to be read may be its target.
pub(super) fn may_cover(
    budget: &PodUnavailableBudget,
    pod: &PodView,
    owners: &Chain,
    known: Source<'_>,
) -> bool {
    covers(budget, &owners.workloads, &pod.labels)
        || (owners.missing.is_some() && budget.spec.target_ref.is_some())
        || target_of(budget).is_some_and(|target| is_in_scale(&target, &pod.labels, known))
}

/// Does none of the budgets cover the pod? False also if that is not certain: an owner has yet to be read, cannot
/// be read, or is not in a cache that may be older than the pod.
pub(super) fn is_uncovered(pod: &PodView, budgets: &[&PodUnavailableBudget], known: Source<'_>) -> bool {
    let is_certain = Cell::new(true);
    let noted = |workload: &Workload, aspect: Aspect| {
        let found = known(workload, aspect);
        let is_known = match found {
            Known::Found(_) => true,
            Known::Gone => aspect == Aspect::Scale,
            Known::Unreadable | Known::NotYet => false,
        };
        is_certain.set(is_certain.get() && is_known);
        found
    };
    let owners = owners(pod, budgets.iter().copied(), &noted);
    let controller = pod.controller.as_deref();
    let is_known = controller
        .is_none_or(|controller| !owners.workloads.is_empty() || is_replaced(controller, pod, known));
    let mut live = budgets
        .iter()
        .filter(|budget| budget.metadata.deletion_timestamp.is_none());
    let is_covered = live.any(|budget| may_cover(budget, pod, &owners, &noted));
    is_certain.get() && is_known && !is_covered
}

/// Does the name of a pod's controller belong to an object that was created after the pod?
fn is_replaced(controller: &OwnerView, pod: &PodView, known: Source<'_>) -> bool {
    let Known::Found(found) = known(&Workload::from(controller), Aspect::Owner) else {
        return false;
    };
    let is_younger = found
        .created
        .zip(pod.created)
        .is_some_and(|(found, pod)| found > pod);
    found.uid != controller.uid && is_younger
}

/// The workload that a budget names.
pub(super) fn target_of(budget: &PodUnavailableBudget) -> Option<Workload> {
    let target = budget.spec.target_ref.as_ref()?;
    Some(Workload::new(target.group(), &target.kind, &target.name))
}

/// The budgets whose target is the workload or is below or above it, and those that select one of its pods. A
/// workload that is gone has pods, too: those whose count depended on it.
pub(super) fn of_workload(
    workload: &Workload,
    budgets: &All,
    pods: &[Arc<PodView>],
    known: Source<'_>,
) -> Vec<ObjectKey> {
    let above = chain(&OwnerView::from(workload), known);
    let depends = |pod: &Ownership| {
        let found = Cell::new(false);
        let noted = |one: &Workload, aspect: Aspect| {
            found.set(found.get() || one == workload);
            // What a cache says leads to what the count will ask for.
            known(one, aspect.min(Aspect::Scale))
        };
        let _ = wanted(pod, &noted);
        found.get()
    };
    let is_concerned = |budget: &&Arc<Parsed<PodUnavailableBudget>>| {
        let Ok(budget) = &budget.object else {
            return false;
        };
        match (target_of(budget), &budget.spec.selector) {
            (Some(target), _) => {
                target == *workload
                    || above.workloads.contains(&target)
                    || above.missing.is_some()
                    || depends(&Ownership::of_workload(&target))
            }
            (None, Some(selector)) => pods.iter().any(|pod| {
                let is_selected = !selector.is_empty() && selector.matches_by(|key| pod.labels.get(key));
                is_selected && Ownership::of(pod).is_some_and(|pod| depends(&pod))
            }),
            (None, None) => false,
        }
    };
    let concerned = budgets.iter().filter(is_concerned);
    concerned.map(|budget| ObjectKey::of(&**budget)).collect()
}

/// The group and kind of a workload whose existence, owner or scale changed, with its name.
pub(super) fn changed<T>(
    (group, kind): (&str, &str),
    delta: &Delta<T>,
    view: impl Fn(&T) -> WorkloadView,
) -> Option<(Box<str>, Workload)> {
    let seen = |object: &Arc<T>| {
        let view = view(object);
        (view.is_ending(), view.uid, view.replicas, view.controller)
    };
    if delta.old.as_ref().map(seen) == delta.new.as_ref().map(seen) {
        return None;
    }
    let view = view(delta.new.as_ref().or(delta.old.as_ref())?);
    Some((view.namespace, Workload::new(group, kind, &view.name)))
}
