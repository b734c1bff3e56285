//! *"No more nodes than parallelism pull for a job, an ended job asks none, and nothing of others is lost."*

use super::super::start::{CONTROLLER, FOREIGN, JOBS, NODE_IMAGES};
use super::known::{believed, has_ended, is_active, owners, tags};
use crate::rules::prelude::*;

/// Judges changes of NodeImages.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != NODE_IMAGES.plural || write.method != Method::Patch || !write.subresource.is_empty()
    {
        return None;
    }
    let [before, after] = write.both(mirror, NODE_IMAGES)?;
    never!(write, "nothing of others is lost", some what in lost(write, mirror, before, after) => "{what}");
    if write.component != CONTROLLER {
        return None;
    }
    for uid in asked(before, after) {
        let jobs = believed(write, mirror, &uid);
        never!(write, "an ended job asks no node",
            jobs.is(|job| has_ended(job) || job.is_going()) => "{uid} had ended");
        let limits = jobs
            .versions
            .iter()
            .map(|job| job.value()["spec"]["parallelism"].as_u64().unwrap_or(1));
        let limit = limits.max().unwrap_or(u64::MAX);
        let pulls =
            |node: &Object| node.uid != after.uid && !node.gone && !node.is_going() && is_active(node, &uid);
        let busy = write
            .sees_all(mirror, NODE_IMAGES)
            .filter(|node| node.is(pulls))
            .count() as u64;
        never!(write, "nodes at a time", busy >= limit => "{busy} others pulled for {uid}, of {limit}");
    }
    None
}

/// Uids of the jobs that ask the node with a write.
fn asked(before: &Object, after: &Object) -> Vec<String> {
    let had = |uid: &str| tags(before).iter().any(|(_, tag)| owners(tag).contains(uid));
    let all = tags(after);
    let owners = all.iter().flat_map(|(_, tag)| owners(tag));
    owners.filter(|uid| !had(uid)).map(str::to_owned).collect()
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
            let surely_runs = believed(write, mirror, uid).must_be(|job| !job.is_going() && !has_ended(job));
            if surely_runs && !is_of_type_never(mirror, uid) {
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
