//! *"An end is final. A job completes when every node that is to run a pod has run one. Status reports what was."*

use std::sync::Arc;

use kruise_sim::Method;

use super::{
    failure,
    known::{believed, has_ended, is_never, is_over_limit, pod_has_ended},
};
use crate::engine::oracles::{Mirror, NODES, Object, PODS, Violation, Write};
use crate::subjects::broadcastjob::start::JOBS;
use crate::subjects::{fit, nodes::node_of};

/// Judges status writes.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != JOBS.plural || write.subresource != "status" || write.method != Method::Patch {
        return None;
    }
    let versions = mirror.of(JOBS).changed_at(write.marks.of(JOBS))?;
    let new = versions.last()?;
    let before = versions
        .len()
        .checked_sub(2)
        .and_then(|place| versions.get(place));
    let violation = |oracle, what: String| {
        let what = format!("{} reported {what}", write.process);
        Some(Violation { oracle, what })
    };
    let status = |job: &Object, member: &str| job.value()["status"][member].clone();
    if let Some(before) = before.filter(|before| has_ended(before) && !is_never(new)) {
        let end = |job: &Object| (status(job, "phase"), status(job, "completionTime"));
        if end(before) != end(new) {
            return violation(
                "an end is final",
                format!("{:?} after {:?}", end(new), end(before)),
            );
        }
        return None;
    }
    if let Some(before) = before
        && let Some(violation) = failure::judge_status((before, new), write, mirror)
    {
        return Some(violation);
    }
    if let Some(wrong) = too_many(new, mirror) {
        return violation("status reports what was", wrong);
    }
    if status(new, "phase") == "completed"
        && let Some(node) = left_out(new, write, mirror)
    {
        return violation(
            "a job completes when every node has run",
            format!("an end, and {node} has run nothing"),
        );
    }
    None
}

/// A count that is higher than it can have been.
fn too_many(job: &Object, mirror: &Mirror) -> Option<String> {
    let count = |name: &str| job.value()["status"][name].as_i64().unwrap_or(0);
    let pods = mirror.of(PODS).objects.values();
    let pods = pods.filter(|versions| versions.iter().any(|pod| pod.owner() == &*job.uid));
    let (pods, nodes) = (pods.count() as i64, mirror.of(NODES).objects.len() as i64);
    let counted = count("active") + count("succeeded") + count("failed");
    let desired = count("desired");
    (counted > pods || desired > nodes)
        .then(|| format!("{counted} pods of {pods}, and {desired} nodes of {nodes}"))
}

/// A node that must be to run a pod, and of which no pod may have ended.
fn left_out<'m>(job: &Object, write: &Write<'_>, mirror: &'m Mirror) -> Option<&'m str> {
    let jobs = believed(write, mirror, &job.uid);
    let (nodes, pods) = (mirror.of(NODES), mirror.of(PODS));
    let must_run = |versions: &&[Arc<Object>]| {
        let floor = write.sent.floors.of(NODES);
        versions.first().is_some_and(|first| first.version <= floor)
            && versions.iter().all(|node| {
                let mut jobs = jobs.iter();
                !node.gone && jobs.all(|job| fit::runs(&job.value()["spec"]["template"], node, &[]))
            })
    };
    let floor = write.sent.floors.of(PODS);
    let may_be_done = |node: &str| {
        let mut seen = pods.objects.keys().flat_map(|uid| pods.window(uid, floor));
        seen.any(|pod| {
            let is_on_it = pod.owner() == &*job.uid && node_of(pod) == Some(node);
            is_on_it && (pod_has_ended(pod) || pod.is_going() || is_over_limit(pod, job))
        })
    };
    let windows = nodes
        .objects
        .keys()
        .map(|uid| nodes.window(uid, write.sent.floors.of(NODES)));
    let must_run = windows.filter(must_run).filter_map(|versions| versions.first());
    let mut left = must_run.map(|node| &*node.name).filter(|node| !may_be_done(node));
    left.next()
}
