//! Keys: the ContainerRecreateRequests that a change of a pod enqueues.

use std::sync::Arc;

use kruise_api::names::KRUISE_POD_READY;
use kruise_views::PodView;
use kube_cache::{Delta, ObjectKey};

use super::CachedRequest;

/// The requests for the pod, before or after a change that a plan reads.
pub(super) fn of_pod(
    delta: &Delta<PodView>,
    requests: &dyn Fn(&str) -> Vec<Arc<CachedRequest>>,
) -> Vec<ObjectKey> {
    if !is_read(delta) {
        return Vec::new();
    }
    let (old, new) = (delta.old.as_ref(), delta.new.as_ref());
    let replaced = old.filter(|old| new.is_some_and(|new| new.uid != old.uid));
    let pods = new.or(old).into_iter().chain(replaced);
    let concerned = pods.flat_map(|pod| requests(&pod.uid));
    concerned.map(|request| ObjectKey::of(&*request)).collect()
}

fn is_read(delta: &Delta<PodView>) -> bool {
    let (Some(old), Some(new)) = (&delta.old, &delta.new) else {
        return true;
    };
    old.uid != new.uid
        || old.deleting != new.deleting
        || old.statuses != new.statuses
        || old.sidecars != new.sidecars
        || old.condition(KRUISE_POD_READY) != new.condition(KRUISE_POD_READY)
}
