//! Keys: the nodes whose NodeImages a change enqueues.

use std::sync::Arc;

use kruise_plan_nodes::nodeimage::Owner;
use kruise_views::NodeView;
use kube_cache::{Delta, ObjectKey};

use crate::images::{CachedNodeImage, CachedPullJob};

/// The node, if the change is one that a plan reads. Readiness counts until the node has a NodeImage.
pub(super) fn of_node(delta: &Delta<NodeView>, has_image: &dyn Fn(&str) -> bool) -> Option<ObjectKey> {
    let node = delta.latest()?;
    let is_read = match (&delta.old, &delta.new) {
        (Some(old), Some(new)) => {
            let awaited = || old.ready != new.ready || old.ready_since != new.ready_since;
            old.uid != new.uid
                || old.deleting != new.deleting
                || old.labels != new.labels
                || (awaited() && !has_image(&node.name))
        }
        _ => true,
    };
    is_read.then(|| ObjectKey::of(&**node))
}

/// The nodes that have tags of a job which is gone, or does not keep them any more.
pub(super) fn of_job(
    delta: &Delta<CachedPullJob>,
    with_tags: &dyn Fn(&str) -> Vec<Arc<CachedNodeImage>>,
) -> Vec<ObjectKey> {
    let Some(old) = &delta.old else { return Vec::new() };
    let stays = delta
        .new
        .as_ref()
        .filter(|new| new.metadata.uid == old.metadata.uid);
    let is_same = stays.is_some_and(|new| as_owner(new) == as_owner(old));
    if is_same {
        return Vec::new();
    }
    let nodes = with_tags(&old.metadata.uid);
    nodes.iter().map(|node| ObjectKey::of(&**node)).collect()
}

/// What an existing job is to the tags that it wants.
pub(super) fn as_owner(job: &CachedPullJob) -> Owner {
    match &job.object {
        Ok(job) if job.is_active() && !job.spec.completion_policy.is_never() => Owner::Pulls,
        Ok(_) => Owner::Exists,
        Err(_) => Owner::Unknown,
    }
}
