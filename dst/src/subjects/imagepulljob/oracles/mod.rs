//! Oracles of ImagePullJobs and NodeImages, written from their specification.

mod pulls;

use super::start::{AGENTS, FOREIGN, JOBS, NODE_IMAGES, SECRET, SECRETS};
use crate::rules::prelude::*;

/// The component of the controller of NodeImages.
const TIDIER: &str = "nodeimage-controller";
/// Annotation of a copy: the jobs that need it.
const REFERENCES: &str = "imagepulljobs.kruise.io/references";

/// What judges the jobs of a scenario.
#[derive(Default)]
pub struct ImagePullJobOracles {
    pulls: pulls::Pulls,
}

impl Oracles for ImagePullJobOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        changed(write, mirror).or_else(|| copy_deleted(write, mirror))
    }

    fn judge_other(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        if write.component == TIDIER {
            return self.judge(write, mirror);
        }
        self.pulls.judge(write, mirror)
    }

    fn unfinished(&self, mirror: &Mirror, _: Timestamp, _: &Value) -> Result<(), String> {
        nodes(mirror)?;
        jobs(mirror)?;
        copies(mirror)
    }

    /// Each node is asked, and reports that it pulls and what comes of it.
    fn writes_to_come(&self, mirror: &Mirror) -> Option<usize> {
        let running = mirror.of(JOBS).now().filter(|job| !job.is_completed()).count();
        Some(running * mirror.of(NODE_IMAGES).now().count() * 4)
    }
}

/// *"No more nodes than parallelism pull for a job, an ended job asks none, and nothing of others is lost."*
fn changed(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    let [before, after] = write
        .both(mirror, NODE_IMAGES)
        .filter(|_| write.changes(NODE_IMAGES))?;
    never!(write, "nothing of others is lost", some what in lost(write, mirror, before, after) => "{what}");
    if write.component == TIDIER {
        return None;
    }
    for uid in wanted_by(after).difference(&wanted_by(before)) {
        let jobs = write.sees(mirror, JOBS, uid);
        never!(write, "an ended job asks no node",
            jobs.is(|job| job.is_completed() || job.is_going()) => "{uid} had ended");
        let limits = jobs.versions.iter();
        let limits = limits.map(|job| job.spec()["parallelism"].as_u64().unwrap_or(1));
        let limit = limits.max().unwrap_or(u64::MAX);
        let pulls = |node: &Object| node.uid != after.uid && !node.is_going() && is_active(node, uid);
        let busy = write
            .sees_all(mirror, NODE_IMAGES)
            .filter(|node| node.is(pulls))
            .count() as u64;
        never!(write, "nodes at a time", busy >= limit => "{busy} others pulled for {uid}, of {limit}");
    }
    None
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
            let runs = |job: &Object| !job.is_going() && !job.is_completed();
            let expires = mirror.last(JOBS, uid).is_some_and(|job| is_never(job));
            if write.sees(mirror, JOBS, uid).must_be(runs) && !expires {
                return Some(format!("{uid} wants {name}"));
            }
        }
    }
    None
}

/// *"A copy of a secret stays as long as a job names its original, whether that has ended or not."*
fn copy_deleted(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    let copy = write.deleted(mirror, SECRETS)?;
    never!(write, "originals stay", copy.metadata()["namespace"] != AGENTS => "it is no copy");
    let stays = |job: &&Object| write.sees(mirror, JOBS, &job.uid).must_be(|job| !job.is_going());
    never!(write, "copies stay while jobs need them",
        some job in needed_by(copy, mirror).into_iter().find(stays) => "{} needs it", job.name);
    None
}

/// Each node has a NodeImage with its labels, and tags that somebody wants.
fn nodes(mirror: &Mirror) -> Result<(), String> {
    for node in mirror.of(NODES).now() {
        let image = mirror.of(NODE_IMAGES).named(&node.name);
        let image = image.ok_or_else(|| format!("node {} has no NodeImage", node.name))?;
        let labels = |object: &Object| object.metadata()["labels"].clone();
        expect(
            format_args!("labels of NodeImage {}", image.name),
            labels(image),
            labels(node),
        )?;
    }
    let exists = |uid: &str| mirror.of(JOBS).now().any(|job| *job.uid == *uid);
    for image in mirror.of(NODE_IMAGES).now() {
        wrong!(mirror.of(NODES).named(&image.name).is_none() => "NodeImage {} has no node", image.name);
        for (name, tag) in tags(image) {
            wrong!(some uid in owners(tag).into_iter().find(|uid| !exists(uid))
                => "{name} on {} is wanted by {uid}, which is gone", image.name);
            wrong!(!owners(tag).is_empty() && !has_result(image, &name, tag)
                => "{name} on {} has no result", image.name);
        }
    }
    Ok(())
}

/// Jobs have ended and are gone, or have results of all nodes.
fn jobs(mirror: &Mirror) -> Result<(), String> {
    let nodes = || mirror.of(NODE_IMAGES).now();
    for job in mirror.of(JOBS).now() {
        let (name, status) = (&job.name, job.status());
        wrong!(job.is_going() => "{name} is still being deleted");
        wrong!(!is_never(job) => "{name} is not deleted after its end and its time to live: {status}");
        let count = |name: &str| number(&status[name]) as usize;
        let all = nodes().count();
        wrong!(count("desired") != all || count("succeeded") + count("failed") != all
            => "{name} reports {status} of {all} nodes");
        wrong!(!nodes().all(|node| wanted_by(node).contains(&*job.uid)) => "{name} has not asked all nodes");
    }
    Ok(())
}

/// Copies are needed, and have the data of the original.
fn copies(mirror: &Mirror) -> Result<(), String> {
    let mut originals = mirror.of(SECRETS).now();
    let original = originals.find(|one| one.metadata()["namespace"] == "default" && *one.name == *SECRET);
    let data = original.map(|original| &original.value()["data"]);
    for copy in mirror
        .of(SECRETS)
        .now()
        .filter(|secret| secret.metadata()["namespace"] == AGENTS)
    {
        wrong!(needed_by(copy, mirror).is_empty() => "copy {} is left, and no job needs it", copy.name);
        wrong!(data != Some(&copy.value()["data"]) => "copy {} has other data than the original", copy.name);
    }
    Ok(())
}

/// The jobs that a copy lists.
fn needed_by<'m>(copy: &Object, mirror: &'m Mirror) -> Vec<&'m Object> {
    let listed = text(&copy.annotations()[REFERENCES]);
    let names = listed.split(',').filter_map(|job| job.split_once('/'));
    let jobs = names.filter_map(|(_, name)| mirror.of(JOBS).named(name));
    jobs.map(|job| &**job).filter(|job| !job.is_going()).collect()
}

/// Do tags of the job expire while it runs?
fn is_never(job: &Object) -> bool {
    job.spec()["completionPolicy"]["type"] == "Never"
}

/// The tags of a node: image, tag, and the entry.
fn tags(node: &Object) -> Vec<(String, &Value)> {
    tags_in(&node.spec()["images"])
}

/// The tags below images, with their names.
fn tags_in(images: &Value) -> Vec<(String, &Value)> {
    let tags = pairs(images).flat_map(|(name, image)| {
        let tags = items(&image["tags"]);
        tags.map(move |tag| (format!("{name}:{}", text(&tag["tag"])), tag))
    });
    tags.collect()
}

/// Uids of the owners of a tag.
fn owners(tag: &Value) -> BTreeSet<&str> {
    let owners = items(&tag["ownerReferences"]);
    owners.filter_map(|owner| owner["uid"].as_str()).collect()
}

/// Uids of the jobs that ask a node.
fn wanted_by(node: &Object) -> BTreeSet<&str> {
    tags(node).into_iter().flat_map(|(_, tag)| owners(tag)).collect()
}

/// Is the node to pull for the job with this uid, and has it not ended?
fn is_active(node: &Object, uid: &str) -> bool {
    let mut tags = tags(node).into_iter();
    tags.any(|(name, tag)| owners(tag).contains(uid) && !has_result(node, &name, tag))
}

/// Has the current round of a tag ended?
fn has_result(node: &Object, name: &str, tag: &Value) -> bool {
    let image = name.rsplit_once(':').map_or(name, |(image, _)| image);
    let version = |of: &Value| number(&of["version"]);
    let mut statuses = items(&node.status()["imageStatuses"][image]["tags"]);
    let status = statuses.find(|one| one["tag"] == tag["tag"] && version(one) == version(tag));
    status.is_some_and(|status| status["phase"] == "Succeeded" || status["phase"] == "Failed")
}
