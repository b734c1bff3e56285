//! What the sender of a write for an EphemeralJob may have believed of it, and what pods hold.

use super::super::start::JOBS;
use crate::rules::belief::Seen;
use crate::rules::prelude::*;

/// The job with this uid as the sender of a write may have seen it.
pub fn believed<'m>(write: &Write<'_>, mirror: &'m Mirror, uid: &str) -> Seen<'m> {
    write.sees(mirror, JOBS, uid)
}

/// Has the job ended?
pub fn has_ended(job: &Object) -> bool {
    !job.value()["status"]["completionTime"].is_null()
}

/// Does the job select the pod?
pub fn is_selected(pod: &Object) -> bool {
    pod.label("app") == "cart"
}

/// The pods that a job counts, as they are now.
pub fn pods(mirror: &Mirror) -> impl Iterator<Item = &Arc<Object>> {
    mirror
        .of(PODS)
        .now()
        .filter(|pod| is_selected(pod) && pod.is_active())
}

/// The ephemeral containers of a pod that a job with this uid added.
pub fn containers<'o>(pod: &'o Object, uid: &str) -> Vec<&'o Value> {
    let is_own = |one: &&Value| {
        let mut env = items(&one["env"]);
        env.any(|one| one["name"] == "KRUISE_EJOB_ID" && one["value"] == uid)
    };
    items(&pod.value()["spec"]["ephemeralContainers"])
        .filter(is_own)
        .collect()
}

/// The container of a job in a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// There is none.
    None,
    /// It has not ended.
    Open,
    /// It has ended with this code.
    Ended(i64),
}

/// What became of the container of a job in a pod.
pub fn container(pod: &Object, uid: &str) -> Added {
    let own = containers(pod, uid);
    let Some(own) = own.first() else {
        return Added::None;
    };
    let mut statuses = items(&pod.value()["status"]["ephemeralContainerStatuses"]);
    let status = statuses.find(|one| one["name"] == own["name"]);
    let code = status.and_then(|status| status["state"]["terminated"]["exitCode"].as_i64());
    code.map_or(Added::Open, Added::Ended)
}
