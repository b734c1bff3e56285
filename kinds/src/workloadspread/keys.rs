//! Keys: the WorkloadSpreads that a change of something else enqueues.

use std::{collections::BTreeSet, sync::Arc};

use kruise_plan_kit::{
    spread::{matched, version},
    workloads::Workload,
};
use kruise_views::{PodView, WorkloadView};
use kube_cache::{Delta, ObjectKey};

use super::cached::CachedSpread;

/// The WorkloadSpreads that are for a workload.
pub(super) type ForWorkload<'a> = &'a dyn Fn(&str, &Workload) -> Vec<Arc<CachedSpread>>;

/// The one that the annotation of a pod names, if the pod came or went, ended, is of another version, found a node
/// or none, or is in another subset.
pub(super) fn of_pod(delta: &Delta<PodView>) -> BTreeSet<ObjectKey> {
    let seen = |pod: &Arc<PodView>| {
        let kind = pod.controller.as_ref().map_or("", |owner| &owner.kind);
        let scheduled = pod.condition("PodScheduled");
        let scheduled = scheduled.map(|condition| (condition.status, condition.reason.clone()));
        (
            pod.uid.clone(),
            pod.is_active(),
            version(&pod.labels, kind),
            scheduled,
            matched(&pod.annotations),
        )
    };
    let (old, new) = (delta.old.as_ref().map(seen), delta.new.as_ref().map(seen));
    if old == new {
        return BTreeSet::new();
    }
    let pods = delta.old.iter().chain(&delta.new);
    let keys = pods.filter_map(|pod| {
        let name = matched(&pod.annotations)?.name;
        Some(ObjectKey::new(&*pod.namespace, name))
    });
    keys.filter(|key| !key.name.is_empty()).collect()
}

/// Those that are for a workload which came, went, is scaled or has another template, or for the workload that
/// controls it.
pub(super) fn of_workload<T>(
    (group, kind): (&str, &str),
    delta: &Delta<T>,
    view: impl Fn(&T) -> WorkloadView,
    spreads: ForWorkload<'_>,
) -> BTreeSet<ObjectKey> {
    let seen = |object: &Arc<T>| {
        let view = view(object);
        (
            view.uid,
            view.deleting,
            view.replicas,
            view.template,
            view.template_hash,
        )
    };
    let (old, new) = (delta.old.as_ref().map(seen), delta.new.as_ref().map(seen));
    let Some(latest) = delta.latest().filter(|_| old != new) else {
        return BTreeSet::new();
    };
    let latest = view(latest);
    let own = Workload::new(group, kind, &latest.name);
    let above = latest.controller.as_deref().map(Workload::from);
    let workloads = [own].into_iter().chain(above);
    let concerned = workloads.flat_map(|workload| spreads(&latest.namespace, &workload));
    concerned.map(|spread| ObjectKey::of(&*spread)).collect()
}
