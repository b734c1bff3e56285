//! *"No more nodes than parallelism pull for a job, an ended job asks none, and nothing of others is lost."*

use kruise_sim::Method;

use super::known::{believed, change, has_ended, is_surely_active, owners, surely_runs, tags};
use crate::engine::oracles::{Mirror, Object, Violation, Write};
use crate::subjects::imagepulljob::start::{CONTROLLER, FOREIGN, JOBS, NODE_IMAGES};

/// Judges changes of NodeImages.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != NODE_IMAGES.plural || write.method != Method::Patch || !write.subresource.is_empty()
    {
        return None;
    }
    let [before, after] = change(write, mirror)?;
    let violation = |oracle, what: String| {
        let what = format!("{} wrote {}: {what}", write.process, write.name);
        Some(Violation { oracle, what })
    };
    if let Some(what) = lost(write, mirror, before, after) {
        return violation("nothing of others is lost", what);
    }
    if write.component != CONTROLLER {
        return None;
    }
    for uid in asked(before, after) {
        let jobs = believed(write, mirror, &uid);
        if !jobs.is_empty() && jobs.iter().all(|job| has_ended(job) || job.is_going()) {
            return violation("an ended job asks no node", format!("{uid} had ended"));
        }
        let limits = jobs
            .iter()
            .map(|job| job.value()["spec"]["parallelism"].as_u64().unwrap_or(1));
        let limit = limits.max().unwrap_or(u64::MAX);
        let others = mirror
            .of(NODE_IMAGES)
            .objects
            .keys()
            .filter(|node| **node != after.uid);
        let busy = others
            .filter(|node| is_surely_active(write, mirror, node, &uid))
            .count() as u64;
        if busy >= limit {
            return violation(
                "nodes at a time",
                format!("{busy} others pulled for {uid}, of {limit}"),
            );
        }
    }
    None
}

/// Uids of the jobs that ask the node with a write.
fn asked(before: &Object, after: &Object) -> Vec<String> {
    let had = |uid: &str| tags(before).iter().any(|(_, tag)| owners(tag).contains(uid));
    let all = tags(after);
    let new = all
        .iter()
        .flat_map(|(_, tag)| owners(tag))
        .filter(|uid| !had(uid));
    new.map(str::to_owned).collect()
}

/// What the write took from somebody who still wants it.
fn lost(write: &Write<'_>, mirror: &Mirror, before: &Object, after: &Object) -> Option<String> {
    let left = tags(after);
    for (name, tag) in tags(before) {
        let stays = left.iter().find(|(one, _)| *one == name).map(|(_, tag)| *tag);
        if name.starts_with(FOREIGN) && stays.is_none() {
            return Some(format!("{name} is gone"));
        }
        let wanted_still = stays.map(owners).unwrap_or_default();
        for uid in owners(tag).difference(&wanted_still) {
            if surely_runs(write, mirror, uid) && !is_of_type_never(mirror, uid) {
                return Some(format!("{uid} wants {name}"));
            }
        }
    }
    None
}

/// Do tags of the job expire while it runs?
fn is_of_type_never(mirror: &Mirror, uid: &str) -> bool {
    let versions = mirror.of(JOBS).objects.get(uid);
    let newest = versions.and_then(|versions| versions.last());
    newest.is_some_and(|job| job.value()["spec"]["completionPolicy"]["type"] == "Never")
}
