//! *"An end is final. A job completes when every node that is to run a pod has run one. It fails for a reason, and
//! not before its deadline. Status reports what was. A job is deleted its time to live after its end, and not
//! before."*

use super::super::start::JOBS;
use super::facts::{
    failure_policy, has_ended, has_stored_end, holds, is_failure, is_never, is_over_limit, known_failure,
    oracle,
};
use crate::rules::fit;
use crate::rules::prelude::*;
use crate::rules::reports::ever;
use crate::subjects::nodes::node_of;

/// Judges status writes, and the deletion of a job.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if let Some(job) = write.deleted(mirror, JOBS) {
        let ttl = &job.spec()["completionPolicy"]["ttlSecondsAfterFinished"];
        let due = after(&job.status()["completionTime"], ttl);
        let is_due = has_ended(job) && due.is_some_and(|due| write.sender_now() >= due);
        never!(write, "a job is deleted when its time to live is over", !is_due => "{due:?} ends it");
    }
    let change = write.change(mirror, JOBS).filter(|_| write.reports(JOBS))?;
    let new = change.after;
    if let Some(before) = change.before() {
        if has_ended(before) && !is_never(new) {
            let end = |job: &Object| ["phase", "completionTime"].map(|part| job.status()[part].clone());
            never!(write, "an end is final", end(before) != end(new) => "{:?} after {:?}", end(new), end(before));
            return None;
        }
        if let Some(violation) = follows(before, new, write, mirror) {
            return Some(violation);
        }
    }
    let count = |name: &str| number(&new.status()[name]);
    let counted = count("active") + count("succeeded") + count("failed");
    let (pods, nodes) = (
        ever(mirror, &new.uid, |_| true),
        mirror.of(NODES).objects.len() as i64,
    );
    never!(write, "status reports what was", counted > pods || count("desired") > nodes
        => "{counted} pods of {pods}, and {} nodes of {nodes}", count("desired"));
    let is_completed = new.status()["phase"] == "completed";
    never!(write, "a job completes when every node has run",
        some node in left_out(new, write, mirror).filter(|_| is_completed) => "{node} has run nothing");
    None
}

/// Judges a status that is written for a version of the job that has not ended.
fn follows(before: &Object, new: &Object, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    let phase = &new.status()["phase"];
    let goes_on = (phase == "running" || phase == "completed") && holds(before);
    never!(write, oracle(failure_policy(before)),
        some failed in known_failure(before, write, mirror).filter(|_| goes_on) => "{} has failed", failed.name);
    let mut pods = write.sees_all(mirror, PODS);
    let ends_it =
        failure_policy(before) == "FailFast" && pods.any(|pod| pod.may_be(|pod| is_failure(pod, before)));
    if phase != "failed" || has_stored_end(before) || ends_it {
        return None;
    }
    let deadline = deadline(before, new);
    never!(write, "a job fails for a reason", deadline.is_none() => "it has none");
    never!(write, "no job fails before its deadline",
        some deadline in deadline.filter(|deadline| write.sender_now() < *deadline) => "that is {deadline}");
    None
}

/// When the job fails, if it has a deadline.
fn deadline(before: &Object, new: &Object) -> Option<Timestamp> {
    let seconds = &before.spec()["completionPolicy"]["activeDeadlineSeconds"];
    let mut starts = [before, new].into_iter().map(|job| &job.status()["startTime"]);
    after(starts.find(|start| start.is_string())?, seconds).filter(|_| !is_never(before))
}

/// A node that must be to run a pod, and of which no pod may have ended.
fn left_out<'m>(job: &Object, write: &Write<'_>, mirror: &'m Mirror) -> Option<&'m str> {
    let jobs = write.sees(mirror, JOBS, &job.uid);
    let runs = |node: &Object| {
        let mut versions = jobs.versions.iter();
        !node.gone && versions.all(|job| fit::runs(&job.spec()["template"], node, &[]))
    };
    let is_done = |pod: &Object, node: &str| {
        let is_on_it = pod.owner() == &*job.uid && node_of(pod) == Some(node);
        is_on_it && (pod.end().is_some() || pod.is_going() || is_over_limit(pod, job))
    };
    let may_be_done = |node: &str| {
        let mut pods = write.sees_all(mirror, PODS);
        pods.any(|pod| pod.may_be(|pod| is_done(pod, node)))
    };
    let must_run = write.sees_all(mirror, NODES).filter(|node| node.must_be(runs));
    must_run.map(|node| node.name()).find(|node| !may_be_done(node))
}
