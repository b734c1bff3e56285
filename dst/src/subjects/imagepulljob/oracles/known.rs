//! What NodeImages say of jobs, and what somebody may have believed of jobs.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;

use crate::engine::oracles::{Mirror, Object, Write};
use crate::subjects::imagepulljob::start::{JOBS, NODE_IMAGES};

/// Has the job ended?
pub fn has_ended(job: &Object) -> bool {
    !job.value()["status"]["completionTime"].is_null()
}

/// The versions of the job with this uid that the sender of a write may have believed.
pub fn believed<'m>(write: &Write<'_>, mirror: &'m Mirror, uid: &str) -> &'m [Arc<Object>] {
    mirror.of(JOBS).window(uid, write.sent.floors.of(JOBS))
}

/// Must the sender of a write know the job, and that it has not ended?
pub fn surely_runs(write: &Write<'_>, mirror: &Mirror, uid: &str) -> bool {
    let mut versions = believed(write, mirror, uid).iter();
    surely_stays(write, mirror, uid) && versions.all(|job| !has_ended(job))
}

/// Must the sender of a write know the job, and that it is not being deleted?
pub fn surely_stays(write: &Write<'_>, mirror: &Mirror, uid: &str) -> bool {
    let versions = believed(write, mirror, uid);
    let is_known = versions
        .first()
        .is_some_and(|first| first.version <= write.sent.floors.of(JOBS));
    is_known && versions.iter().all(|job| !job.is_going())
}

/// The NodeImage before a write to it, and after.
pub fn change<'m>(write: &Write<'_>, mirror: &'m Mirror) -> Option<[&'m Arc<Object>; 2]> {
    let (log, mark) = (mirror.of(NODE_IMAGES), write.marks.of(NODE_IMAGES));
    let versions = log.changed_at(mark)?;
    let version = log.changes.get(mark)?.version;
    let place = versions.iter().position(|node| node.version == version)?;
    Some([versions.get(place.checked_sub(1)?)?, versions.get(place)?])
}

/// The tags of a node: image, tag, and the entry.
pub fn tags(node: &Object) -> Vec<(String, &Value)> {
    let images = node.value()["spec"]["images"].as_object().into_iter().flatten();
    let tags = images.flat_map(|(name, image)| {
        let tags = image["tags"].as_array().into_iter().flatten();
        tags.map(move |tag| (format!("{name}:{}", tag["tag"].as_str().unwrap_or_default()), tag))
    });
    tags.collect()
}

/// Uids of the owners of a tag.
pub fn owners(tag: &Value) -> BTreeSet<&str> {
    let owners = tag["ownerReferences"].as_array().into_iter().flatten();
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
    let statuses = node.value()["status"]["imageStatuses"][image]["tags"].as_array();
    let version = |of: &Value| of["version"].as_i64().unwrap_or(0);
    let mut statuses = statuses.into_iter().flatten();
    let status = statuses.find(|one| one["tag"] == tag["tag"] && version(one) == version(tag));
    status.is_some_and(|status| status["phase"] == "Succeeded" || status["phase"] == "Failed")
}

/// Is every version of the node that somebody may have believed active for the job?
pub fn is_surely_active(write: &Write<'_>, mirror: &Mirror, node: &str, uid: &str) -> bool {
    let versions = mirror
        .of(NODE_IMAGES)
        .window(node, write.sent.floors.of(NODE_IMAGES));
    !versions.is_empty()
        && versions
            .iter()
            .all(|one| !one.gone && !one.is_going() && is_active(one, uid))
}
