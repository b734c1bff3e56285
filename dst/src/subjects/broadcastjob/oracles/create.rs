//! *"A node gets a pod if it may run one and has none of the job; no more than parallelism are active; a job that has ended, is
//! paused or is being deleted creates none."*

use std::sync::Arc;

use super::known::{believed, has_ended, is_over_limit, pod_has_ended};
use crate::engine::oracles::{Mirror, NODES, Object, PODS, Violation, Write};
use crate::subjects::{
    fit,
    nodes::{created, node_of, pinned},
};

/// Judges the creation of a pod.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    let new = created(write, mirror)?;
    let violation = |oracle, what: String| {
        let node = node_of(new).unwrap_or_default();
        let what = format!("{} created {} on {node}: {what}", write.process, new.name);
        Some(Violation { oracle, what })
    };
    let Some(node) = pinned(&new.value()["spec"]) else {
        return violation("a pod of a job has its form", "it is not pinned to a node".into());
    };
    if new.label("broadcastjob-name") != "web" || new.label("broadcastjob-controller-uid") != new.owner() {
        return violation(
            "a pod of a job has its form",
            "it has not the labels of the job".into(),
        );
    }
    let is_other =
        |pod: &&Arc<Object>| pod.uid != new.uid && pod.owner() == new.owner() && node_of(pod) == Some(node);
    if let Some(other) = mirror.of(PODS).now().find(is_other) {
        return violation(
            "one pod of a job for each node",
            format!("{} is there", other.name),
        );
    }
    let jobs = believed(write, mirror, new.owner());
    if jobs.is_empty() {
        return None;
    }
    if jobs.iter().all(|job| has_ended(job) || job.is_going()) {
        return violation("an ended job runs nothing", "it has ended".into());
    }
    if jobs.iter().all(|job| job.value()["spec"]["paused"] == true) {
        return violation("a paused job creates nothing", "it is paused".into());
    }
    let log = mirror.of(NODES);
    let nodes = log
        .objects
        .keys()
        .flat_map(|uid| log.window(uid, write.sent.floors.of(NODES)));
    let mut nodes = nodes.filter(|one| *one.name == *node && !one.gone);
    let may_run = |node: &Object| {
        let mut jobs = jobs.iter();
        jobs.any(|job| fit::runs(&job.value()["spec"]["template"], node, &[]))
    };
    if !nodes.any(|node| may_run(node)) {
        return violation("nodes that may run a pod of a job", "it may not".into());
    }
    let active = active(write, mirror, new, jobs);
    let limit = jobs
        .iter()
        .filter_map(|job| limit(job, log.objects.len() as i64))
        .max();
    // Without a limit in one of the versions there is none.
    let is_limited = jobs
        .iter()
        .all(|job| !job.value()["spec"]["parallelism"].is_null());
    let limit = limit.filter(|limit| is_limited && active > *limit)?;
    violation("parallelism", format!("{active} are active, {limit} may be"))
}

/// Pods of the job that the sender must believe to be active, the new one included.
fn active(write: &Write<'_>, mirror: &Mirror, new: &Object, jobs: &[Arc<Object>]) -> i64 {
    let log = mirror.of(PODS);
    let is_active = |uid: &Arc<str>| {
        let versions = log.window(uid, write.sent.floors.of(PODS));
        let mut all = versions.iter();
        let may_be_over = |pod: &Object| {
            let mut jobs = jobs.iter();
            pod_has_ended(pod) || jobs.any(|job| is_over_limit(pod, job))
        };
        !versions.is_empty()
            && all.all(|pod| pod.owner() == new.owner() && !pod.gone && !pod.is_going() && !may_be_over(pod))
    };
    log.objects.keys().filter(|uid| is_active(uid)).count() as i64
}

/// How many pods may be active on so many nodes; nothing if there is no limit.
fn limit(job: &Object, nodes: i64) -> Option<i64> {
    let parallelism = &job.value()["spec"]["parallelism"];
    let percent = parallelism
        .as_str()
        .and_then(|text| text.strip_suffix('%')?.parse::<i64>().ok());
    parallelism
        .as_i64()
        .or(percent.map(|percent| (percent * nodes + 99) / 100))
}
