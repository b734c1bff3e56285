//! *"An end is final. A job completes when every node that is to run a pod has run one. Status reports what was."*

use super::super::start::JOBS;
use super::failure;
use super::known::{believed, has_ended, is_never, is_over_limit, pod_has_ended};
use crate::rules::fit;
use crate::rules::prelude::*;
use crate::rules::reports::ever;
use crate::subjects::nodes::node_of;

/// Judges status writes.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != JOBS.plural || write.subresource != "status" || write.method != Method::Patch {
        return None;
    }
    let versions = mirror.of(JOBS).changed_at(write.marks.of(JOBS))?;
    let new = versions.last()?;
    if let [.., before, _] = versions {
        if has_ended(before) && !is_never(new) {
            let end =
                |job: &Object| ["phase", "completionTime"].map(|part| job.value()["status"][part].clone());
            never!(write, "an end is final", end(before) != end(new) => "{:?} after {:?}", end(new), end(before));
            return None;
        }
        if let Some(violation) = failure::judge_status((before, new), write, mirror) {
            return Some(violation);
        }
    }
    let count = |name: &str| number(&new.value()["status"][name]);
    let (counted, desired) = (
        count("active") + count("succeeded") + count("failed"),
        count("desired"),
    );
    let (pods, nodes) = (
        ever(mirror, &new.uid, |_| true),
        mirror.of(NODES).objects.len() as i64,
    );
    never!(write, "status reports what was",
        counted > pods || desired > nodes => "{counted} pods of {pods}, and {desired} nodes of {nodes}");
    let is_completed = new.value()["status"]["phase"] == "completed";
    never!(write, "a job completes when every node has run",
        some node in left_out(new, write, mirror).filter(|_| is_completed) => "{node} has run nothing");
    None
}

/// A node that must be to run a pod, and of which no pod may have ended.
fn left_out<'m>(job: &Object, write: &Write<'_>, mirror: &'m Mirror) -> Option<&'m str> {
    let jobs = believed(write, mirror, &job.uid);
    let runs = |node: &Object| {
        let mut versions = jobs.versions.iter();
        !node.gone && versions.all(|job| fit::runs(&job.value()["spec"]["template"], node, &[]))
    };
    let is_done = |pod: &Object, node: &str| {
        let is_on_it = pod.owner() == &*job.uid && node_of(pod) == Some(node);
        is_on_it && (pod_has_ended(pod) || pod.is_going() || is_over_limit(pod, job))
    };
    let may_be_done = |node: &str| {
        write
            .sees_all(mirror, PODS)
            .any(|pod| pod.may_be(|pod| is_done(pod, node)))
    };
    let must_run = write.sees_all(mirror, NODES).filter(|node| node.must_be(runs));
    must_run.map(|node| node.name()).find(|node| !may_be_done(node))
}
