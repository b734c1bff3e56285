//! What the sender of a write for a BroadcastJob may have believed of it.

use std::sync::Arc;

use crate::engine::oracles::{Mirror, Object, Write};
use crate::subjects::broadcastjob::start::JOBS;

/// The versions of the job with this uid that the sender of a write may have believed.
pub fn believed<'m>(write: &Write<'_>, mirror: &'m Mirror, uid: &str) -> &'m [Arc<Object>] {
    mirror.of(JOBS).window(uid, write.sent.floors.of(JOBS))
}

/// Is it without an end?
pub fn is_never(job: &Object) -> bool {
    job.value()["spec"]["completionPolicy"]["type"] == "Never"
}

/// Has it ended for good?
pub fn has_ended(job: &Object) -> bool {
    let phase = &job.value()["status"]["phase"];
    (phase == "completed" || phase == "failed") && !is_never(job)
}

/// Has the pod ended by itself?
pub fn pod_has_ended(pod: &Object) -> bool {
    let phase = &pod.value()["status"]["phase"];
    phase == "Succeeded" || phase == "Failed"
}
