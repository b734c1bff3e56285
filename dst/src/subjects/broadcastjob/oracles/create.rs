//! *"A node gets a pod if it may run one and has none of the job; no more than parallelism are active; a job that has ended, is
//! paused or is being deleted creates none."*

use super::known::{believed, has_ended, is_over_limit, pod_has_ended};
use crate::rules::belief::{Seen, created};
use crate::rules::fit;
use crate::rules::prelude::*;
use crate::subjects::nodes::{node_of, pinned};

/// Judges the creation of a pod.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    const ORACLE: &str = "a pod of a job has its form";
    let new = created(write, mirror)?;
    let Some(node) = pinned(&new.value()["spec"]) else {
        return write.breaks(ORACLE, "it is not pinned to a node".into());
    };
    never!(write, ORACLE,
        new.label("broadcastjob-name") != "web" || new.label("broadcastjob-controller-uid") != new.owner()
            => "it has not the labels of the job");
    let is_other =
        |pod: &&Arc<Object>| pod.uid != new.uid && pod.owner() == new.owner() && node_of(pod) == Some(node);
    never!(write, "one pod of a job for each node",
        some other in mirror.of(PODS).now().find(is_other) => "{} is there on {node}", other.name);
    let jobs = believed(write, mirror, new.owner());
    if jobs.is_nothing() {
        return None;
    }
    never!(write, "an ended job runs nothing", jobs.is(|job| has_ended(job) || job.is_going()) => "it has ended");
    never!(write, "a paused job creates nothing", jobs.is(|job| job.value()["spec"]["paused"] == true) => "it is paused");
    let runs = |node: &Object| jobs.may_be(|job| fit::runs(&job.value()["spec"]["template"], node, &[]));
    let may_run = |seen: Seen<'_>| seen.may_be(|one| *one.name == *node && !one.gone && runs(one));
    never!(write, "nodes that may run a pod of a job", !write.sees_all(mirror, NODES).any(may_run) => "not {node}");
    let may_be_over = |pod: &Object| pod_has_ended(pod) || jobs.may_be(|job| is_over_limit(pod, job));
    let is_active =
        |pod: &Object| pod.owner() == new.owner() && !pod.gone && !pod.is_going() && !may_be_over(pod);
    // The new one included.
    let active = write
        .sees_all(mirror, PODS)
        .filter(|pod| pod.is(is_active))
        .count() as i64;
    // Without a limit in one of the versions there is none.
    let nodes = mirror.of(NODES).objects.len() as i64;
    let limits = jobs
        .versions
        .iter()
        .map(|job| rounded_up(&job.value()["spec"]["parallelism"], nodes, i64::MAX));
    let limit = limits.max().unwrap_or(i64::MAX);
    never!(write, "parallelism", active > limit => "{active} are active, {limit} may be");
    None
}
