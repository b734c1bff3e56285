//! What NodeImages say of jobs, and what somebody may have believed of jobs.

use super::super::start::JOBS;
use crate::rules::belief::Seen;
use crate::rules::prelude::*;

/// Has the job ended?
pub fn has_ended(job: &Object) -> bool {
    !job.value()["status"]["completionTime"].is_null()
}

/// The job with this uid as the sender of a write may have seen it.
pub fn believed<'m>(write: &Write<'_>, mirror: &'m Mirror, uid: &str) -> Seen<'m> {
    write.sees(mirror, JOBS, uid)
}

/// The tags of a node: image, tag, and the entry.
pub fn tags(node: &Object) -> Vec<(String, &Value)> {
    tags_in(&node.value()["spec"]["images"])
}

/// The tags below images, with their names.
pub fn tags_in(images: &Value) -> Vec<(String, &Value)> {
    let tags = pairs(images).flat_map(|(name, image)| {
        let tags = items(&image["tags"]);
        tags.map(move |tag| (format!("{name}:{}", text(&tag["tag"])), tag))
    });
    tags.collect()
}

/// Uids of the owners of a tag.
pub fn owners(tag: &Value) -> BTreeSet<&str> {
    let owners = items(&tag["ownerReferences"]);
    owners.filter_map(|owner| owner["uid"].as_str()).collect()
}

/// Is the node to pull for the job with this uid, and has it not ended?
pub fn is_active(node: &Object, uid: &str) -> bool {
    tags(node)
        .iter()
        .any(|(name, tag)| owners(tag).contains(uid) && !has_result(node, name, tag))
}

/// Is the node asked by the job with this uid?
pub fn is_asked(node: &Object, uid: &str) -> bool {
    tags(node).iter().any(|(_, tag)| owners(tag).contains(uid))
}

/// Has the current round of a tag ended?
pub fn has_result(node: &Object, name: &str, tag: &Value) -> bool {
    let image = name.rsplit_once(':').map_or(name, |(image, _)| image);
    let version = |of: &Value| number(&of["version"]);
    let mut statuses = items(&node.value()["status"]["imageStatuses"][image]["tags"]);
    let status = statuses.find(|one| one["tag"] == tag["tag"] && version(one) == version(tag));
    status.is_some_and(|status| status["phase"] == "Succeeded" || status["phase"] == "Failed")
}
