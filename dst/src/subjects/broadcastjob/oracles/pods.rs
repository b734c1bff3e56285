//! *"A node gets a pod if it may run one and has none of the job; no more than parallelism are active; a job that
//! has ended, is paused or is being deleted creates none. A pod that has ended is never deleted; one that runs is
//! deleted when the job has ended, or when it may not stay."*

use super::super::start::JOBS;
use super::facts::{failure_policy, has_ended, has_stored_end, holds, is_over_limit, known_failure, oracle};
use crate::rules::belief::Seen;
use crate::rules::fit;
use crate::rules::prelude::*;
use crate::subjects::nodes::{node_of, pinned};

/// Judges the creation and the deletion of a pod.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    match write.created(mirror, PODS) {
        Some(new) => created(write, new, mirror),
        None => deleted(write, mirror),
    }
}

fn created(write: &Write<'_>, new: &Object, mirror: &Mirror) -> Option<Violation> {
    let node = pinned(new.spec()).unwrap_or_default();
    never!(write, "a pod of a job has its form",
        node.is_empty() || new.label("broadcastjob-name") != "web"
            || new.label("broadcastjob-controller-uid") != new.owner() => "it is for {node:?}");
    let is_other =
        |pod: &&Arc<Object>| pod.uid != new.uid && pod.owner() == new.owner() && node_of(pod) == Some(node);
    never!(write, "one pod of a job for each node",
        some other in mirror.of(PODS).now().find(is_other) => "{} is there on {node}", other.name);
    let jobs = write.sees(mirror, JOBS, new.owner());
    let newest = jobs.versions.last()?;
    never!(write, "an ended job runs nothing", jobs.is(|job| has_ended(job) || job.is_going()) => "it has ended");
    never!(write, "a paused job creates nothing", jobs.is(|job| job.spec()["paused"] == true) => "it is paused");
    let runs = |node: &Object| jobs.may_be(|job| fit::runs(&job.spec()["template"], node, &[]));
    let may_run = |seen: Seen<'_>| seen.may_be(|one| *one.name == *node && !one.gone && runs(one));
    never!(write, "nodes that may run a pod of a job", !write.sees_all(mirror, NODES).any(may_run) => "not {node}");
    let may_be_over = |pod: &Object| pod.end().is_some() || jobs.may_be(|job| is_over_limit(pod, job));
    let is_active = |pod: &Object| pod.owner() == new.owner() && !pod.is_going() && !may_be_over(pod);
    // The new one included.
    let active = write
        .sees_all(mirror, PODS)
        .filter(|pod| pod.is(is_active))
        .count() as i64;
    // Without a limit in one of the versions there is none.
    let nodes = mirror.of(NODES).objects.len() as i64;
    let limits = jobs.versions.iter();
    let limits = limits.map(|job| rounded_up(&job.spec()["parallelism"], nodes, i64::MAX));
    let limit = limits.max().unwrap_or(i64::MAX);
    never!(write, "parallelism", active > limit => "{active} are active, {limit} may be");
    let policy = failure_policy(newest);
    let is_held = jobs.is(|job| failure_policy(job) == policy && holds(job));
    never!(write, oracle(policy),
        some failed in known_failure(newest, write, mirror).filter(|_| is_held) => "{policy}, and {} has failed", failed.name);
    None
}

fn deleted(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    let [before, _] = write.pod(mirror).filter(|_| write.method == Method::Delete)?;
    if before.is_going() {
        return None;
    }
    never!(write, "pods that have ended stay", before.end().is_some() => "it had ended");
    // The end is stored first.
    let may_end = write.sees(mirror, JOBS, before.owner()).may_be(has_stored_end);
    never!(write, "a reason for each deletion of a job",
        !may_end && must_stay(before, write, mirror) => "it ran, and its job had not ended");
    None
}

/// Must the sender believe that the pod may stay on its node?
fn must_stay(pod: &Object, write: &Write<'_>, mirror: &Mirror) -> bool {
    let own = json!({"spec": pod.spec()});
    // One that is not bound yet needs a node that takes new pods.
    let is_bound = pod.spec()["nodeName"].is_string();
    let may_stay = |node: &Object| {
        let fits = if is_bound { fit::continues } else { fit::runs };
        !node.gone && fits(&own, node, &[])
    };
    let nodes = write.sees_all(mirror, NODES);
    let mut named = nodes.filter(|node| Some(node.name()) == node_of(pod)).peekable();
    // By a clock that is fast, a pod that is for a node which the sender need not know is old.
    named.peek().is_some() && named.all(|node| (write.skew <= 0 || node.is_known) && node.is(may_stay))
}
