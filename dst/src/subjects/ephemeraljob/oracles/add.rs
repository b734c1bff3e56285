//! *"A pod gets the container once, while the job runs and has a free place, and no more pods than it wants."*

use std::sync::Arc;

use kruise_sim::Method;
use serde_json::Value;

use super::known::{Added, believed, container, containers, has_ended, is_selected};
use crate::engine::oracles::{Mirror, Object, PODS, Violation, Write};

/// Judges the addition of containers to a pod.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != "pods" {
        return None;
    }
    let violation = |oracle, what: String| {
        let what = format!("{} wrote {}: {what}", write.process, write.name);
        Some(Violation { oracle, what })
    };
    if write.method != Method::Patch || write.subresource != "ephemeralcontainers" {
        let what = format!("{:?} /{}", write.method, write.subresource);
        return violation("a job writes ephemeral containers only", what);
    }
    let [before, after] = write.pod(mirror)?;
    let uid = added(before, after)?;
    if containers(after, &uid).len() > 1 {
        return violation(
            "a pod gets the container once",
            format!("it has another one of {uid}"),
        );
    }
    let jobs = believed(write, mirror, &uid);
    let all = |is: &dyn Fn(&Object) -> bool| !jobs.is_empty() && jobs.iter().all(|job| is(job));
    if all(&has_ended) {
        return violation("an ended job adds nothing", "it had ended".into());
    }
    if all(&|job| job.value()["spec"]["paused"] == true) {
        return violation("a paused job adds nothing", "it was paused".into());
    }
    let most = |member: &str, default: i64| {
        let values = jobs
            .iter()
            .map(|job| job.value()["spec"][member].as_i64().unwrap_or(default));
        values.max().unwrap_or(i64::MAX)
    };
    let surely = |is: &dyn Fn(&Object) -> bool| {
        let log = mirror.of(PODS);
        let is_so = |versions: &[Arc<Object>]| !versions.is_empty() && versions.iter().all(|pod| is(pod));
        let floor = write.sent.floors.of(PODS);
        let others = log.objects.keys().filter(|other| **other != before.uid);
        others.filter(|other| is_so(log.window(other, floor))).count() as i64
    };
    let counts = |pod: &Object| !pod.gone && pod.is_active() && is_selected(pod);
    let (parallelism, replicas) = (most("parallelism", 1), most("replicas", i64::MAX));
    let busy = surely(&|pod| counts(pod) && container(pod, &uid) == Added::Open);
    if busy >= parallelism {
        return violation(
            "pods at a time",
            format!("{busy} others ran it, of {parallelism}"),
        );
    }
    let have = surely(&|pod| counts(pod) && container(pod, &uid) != Added::None);
    if have >= replicas {
        return violation("pods of a job", format!("{have} others have it, of {replicas}"));
    }
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
