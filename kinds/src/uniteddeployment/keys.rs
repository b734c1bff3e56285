//! Keys: the UnitedDeployments that a change of an object enqueues.

use std::sync::Arc;

use kruise_api::{
    names::{
        conditions::READY,
        uniteddeployment::{RESERVED_POD, SUBSET_NAME, SUBSET_REVISION},
    },
    uniteddeployment::{KIND, UnitedDeployment},
};
use kruise_frame::caches::owners;
use kruise_runtime::parsed::Parsed;
use kruise_views::{OwnerView, PodView, SubsetView};
use kube_cache::{Delta, ObjectKey};

/// The UnitedDeployments that control a workload, before or after the change, and those that may adopt it.
pub(super) fn of_workload(
    delta: &Delta<SubsetView>,
    in_namespace: impl Fn(&str) -> Vec<Arc<Parsed<UnitedDeployment>>>,
) -> Vec<ObjectKey> {
    let mut keys: Vec<ObjectKey> = owners(&KIND, delta).collect();
    let orphan = delta.new.as_ref().filter(|new| new.controller.is_none());
    if let Some(orphan) = orphan {
        let selects = |cached: &&Arc<Parsed<UnitedDeployment>>| {
            let united = cached.object.as_ref();
            united.is_ok_and(|united| united.spec.selector.matches(&orphan.labels))
        };
        let all = in_namespace(&orphan.namespace);
        keys.extend(all.iter().filter(selects).map(|cached| ObjectKey::of(&**cached)));
    }
    keys
}

/// The UnitedDeployment of a pod of a subset, if what a plan reads of the pod changed. `find` finds the
/// UnitedDeployment of the controlling owner of a pod.
pub(super) fn of_pod(
    delta: &Delta<PodView>,
    find: impl Fn(&str, &OwnerView) -> Option<ObjectKey>,
) -> Option<ObjectKey> {
    let pod = delta
        .latest()
        .filter(|pod| pod.labels.get(SUBSET_NAME).is_some())?;
    if let (Some(old), Some(new)) = (&delta.old, &delta.new)
        && read(old) == read(new)
    {
        return None;
    }
    find(&pod.namespace, pod.controller.as_deref()?)
}

/// What a plan reads of a pod.
fn read(pod: &PodView) -> impl PartialEq {
    let scheduled = pod.condition("PodScheduled");
    (
        (pod.uid.clone(), pod.phase, pod.deleting, pod.node.is_some()),
        scheduled.map(|condition| (condition.status, condition.reason.clone())),
        pod.is_true(READY),
        [SUBSET_REVISION, RESERVED_POD].map(|key| pod.labels.get(key).map(str::to_owned)),
    )
}
