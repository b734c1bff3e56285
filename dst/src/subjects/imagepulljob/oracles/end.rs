//! The state that must be reached after the last edit and the last fault.

use super::super::start::{AGENTS, JOBS, NODE_IMAGES, SECRET, SECRETS};
use super::copies::needed_by;
use super::known::{has_result, is_asked, owners, tags};
use crate::rules::prelude::*;

/// What is not yet as it should be.
pub fn unfinished(mirror: &Mirror) -> Result<(), String> {
    nodes(mirror)?;
    jobs(mirror)?;
    copies(mirror)
}

/// Each node has a NodeImage with its labels, and tags that somebody wants.
fn nodes(mirror: &Mirror) -> Result<(), String> {
    for node in mirror.of(NODES).now() {
        let Some(image) = mirror.of(NODE_IMAGES).named(&node.name) else {
            return Err(format!("node {} has no NodeImage", node.name));
        };
        let labels = |object: &crate::engine::oracles::Object| object.value()["metadata"]["labels"].clone();
        wrong!(labels(node) != labels(image)
            => "the labels of NodeImage {} are not those of its node", node.name);
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
    for job in mirror.of(JOBS).now() {
        let (spec, status) = (&job.value()["spec"], &job.value()["status"]);
        wrong!(job.is_going() => "{} is still being deleted", job.name);
        wrong!(spec["completionPolicy"]["type"] != "Never"
            => "{} is not deleted after its end and its time to live: {status}", job.name);
        let nodes = mirror.of(NODE_IMAGES).now().count() as i64;
        let count = |name: &str| number(&status[name]);
        wrong!(count("desired") != nodes || count("succeeded") + count("failed") != nodes
            => "{} reports {status} of {nodes} nodes", job.name);
        wrong!(!mirror.of(NODE_IMAGES).now().all(|node| is_asked(node, &job.uid))
            => "{} has not asked all nodes", job.name);
    }
    Ok(())
}

/// Copies are needed, and have the data of the original.
fn copies(mirror: &Mirror) -> Result<(), String> {
    let all = mirror.of(SECRETS).now();
    let copies = all.filter(|secret| secret.value()["metadata"]["namespace"] == AGENTS);
    let mut originals = mirror.of(SECRETS).now();
    let original = originals.find(|secret| {
        let metadata = &secret.value()["metadata"];
        metadata["namespace"] == "default" && metadata["name"] == SECRET
    });
    for copy in copies {
        wrong!(needed_by(copy, mirror).is_empty() => "copy {} is left, and no job needs it", copy.name);
        let data = original.map(|original| original.value()["data"].clone());
        wrong!(data.as_ref() != Some(&copy.value()["data"])
            => "copy {} has other data than the original", copy.name);
    }
    Ok(())
}
