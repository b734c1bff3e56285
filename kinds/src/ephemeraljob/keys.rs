//! Keys: the EphemeralJobs that a change of a pod enqueues.

use std::sync::Arc;

use kruise_api::ephemeraljob::EphemeralJob;
use kruise_runtime::parsed::Parsed;
use kruise_views::PodView;
use kube_cache::{Delta, ObjectKey};

/// The jobs that select the pod, before or after a change that they count, and have not ended.
pub(super) fn of_pod(
    delta: &Delta<PodView>,
    jobs: &dyn Fn(&str) -> Vec<Arc<Parsed<EphemeralJob>>>,
) -> Vec<ObjectKey> {
    let Some(pod) = delta.latest().filter(|_| is_counted(delta)) else {
        return Vec::new();
    };
    let jobs = jobs(&pod.namespace);
    let selects = |job: &EphemeralJob| {
        let mut pods = delta.old.iter().chain(&delta.new);
        pods.any(|pod| job.spec.selector.matches_by(|key| pod.labels.get(key)))
    };
    let concerned = jobs.iter().filter(|cached| {
        let job = cached.object.as_ref();
        job.is_ok_and(|job| job.status.completion_time.is_none() && selects(job))
    });
    concerned.map(|job| ObjectKey::of(&**job)).collect()
}

/// Did anything change that a plan reads?
fn is_counted(delta: &Delta<PodView>) -> bool {
    let (Some(old), Some(new)) = (&delta.old, &delta.new) else {
        return true;
    };
    old.uid != new.uid
        || old.is_active() != new.is_active()
        || old.labels != new.labels
        || old.ephemeral != new.ephemeral
}
