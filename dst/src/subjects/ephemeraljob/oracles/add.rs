//! *"A pod gets the container once, while the job runs and has a free place, and no more pods than it wants."*

use super::known::{Added, believed, container, containers, has_ended, is_selected};
use crate::rules::prelude::*;

/// Judges the addition of containers to a pod.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != "pods" {
        return None;
    }
    never!(write, "a job writes ephemeral containers only",
        write.method != Method::Patch || write.subresource != "ephemeralcontainers" => "it is none");
    let [before, after] = write.pod(mirror)?;
    let uid = added(before, after)?;
    never!(write, "a pod gets the container once",
        containers(after, &uid).len() > 1 => "it has another one of {uid}");
    let jobs = believed(write, mirror, &uid);
    never!(write, "an ended job adds nothing", jobs.is(has_ended) => "it had ended");
    never!(write, "a paused job adds nothing", jobs.is(|job| job.value()["spec"]["paused"] == true) => "it was paused");
    let most = |member: &str, default: i64| {
        let versions = jobs.versions.iter();
        let values = versions.map(|job| job.value()["spec"][member].as_i64().unwrap_or(default));
        values.max().unwrap_or(i64::MAX)
    };
    let surely = |is: &dyn Fn(&Object) -> bool| {
        let others = write
            .sees_all(mirror, PODS)
            .filter(|pod| !pod.may_be(|pod| pod.uid == before.uid));
        others.filter(|pod| pod.is(is)).count() as i64
    };
    let counts = |pod: &Object| !pod.gone && pod.is_active() && is_selected(pod);
    let (parallelism, replicas) = (most("parallelism", 1), most("replicas", i64::MAX));
    let busy = surely(&|pod| counts(pod) && container(pod, &uid) == Added::Open);
    never!(write, "pods at a time", busy >= parallelism => "{busy} others ran it, of {parallelism}");
    let have = surely(&|pod| counts(pod) && container(pod, &uid) != Added::None);
    never!(write, "pods of a job", have >= replicas => "{have} others have it, of {replicas}");
    None
}

/// The uid of the job whose container came to a pod.
fn added(before: &Object, after: &Object) -> Option<String> {
    let all = after.value()["spec"]["ephemeralContainers"].as_array()?;
    let had = before.value()["spec"]["ephemeralContainers"].as_array();
    let is_new = |one: &&Value| had.is_none_or(|had| !had.contains(one));
    let env = all.iter().find(is_new)?["env"].as_array()?;
    let id = env.iter().find(|one| one["name"] == "KRUISE_EJOB_ID")?;
    id["value"].as_str().map(str::to_owned)
}
