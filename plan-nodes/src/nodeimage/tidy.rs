//! Removal of what is no longer needed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kruise_api::nodeimage::{Image, ImageTag, NodeImage, TagStatus};
use kruise_plan_kit::{
    Intent, ObjectWrites, Part, Patch, Phase, Plan, Precondition, Write, injected::is_injected, jobs, put,
};
use kruise_views::NodeView;
use serde_json::{Map, Value, json};

use super::{
    overdue::RESPONSE_SECONDS,
    plan::target,
    snapshot::{Owner, Snapshot},
};

/// Images that are no longer needed are removed from a node, and labels follow the node's.
const TIDY_NODE_IMAGE: Intent = Intent::untold("tidy-node-image");

/// The write that makes labels and images as they are wanted, if anything differs. Adds to the plan when the next
/// tag expires.
pub(super) fn tidy(
    snapshot: &Snapshot<'_>,
    image: &NodeImage,
    node: &NodeView,
    plan: &mut Plan,
    now: Timestamp,
) -> Option<ObjectWrites> {
    let mut patch = json!({});
    for (key, value) in labels(image, node) {
        put(&mut patch, &["metadata", "labels", &key], value);
    }
    for (name, listed) in &image.images {
        let tidied = Entry {
            snapshot,
            image,
            name,
            listed,
        }
        .tidied(plan, now);
        if let Some(change) = tidied {
            put(&mut patch, &["spec", "images", name], change);
        }
    }
    let reasons = [
        ("metadata", "its labels follow those of the node"),
        ("spec", "nobody wants what is removed"),
    ];
    let (_, reason) = reasons
        .into_iter()
        .rfind(|(member, _)| patch.get(member).is_some())?;
    let metadata = &image.metadata;
    let write = Write::Patch {
        intent: TIDY_NODE_IMAGE,
        target: target(&metadata.name),
        part: Part::Main,
        patch: Patch::Merge(patch),
        precondition: Precondition::UidAndVersion(metadata.uid.clone(), metadata.resource_version.clone()),
    };
    Some(ObjectWrites::alone(Phase::Cleanup, write, reason))
}

/// The labels that differ from those of the node: with their new values, or null.
fn labels(image: &NodeImage, node: &NodeView) -> BTreeMap<String, Value> {
    let stored = &image.metadata.labels;
    let removed = stored.keys().filter(|key| node.labels.get(key).is_none());
    let removed = removed.map(|key| (key.clone(), Value::Null));
    let set = node
        .labels
        .iter()
        .filter(|(key, value)| stored.get(*key).is_none_or(|have| have != value))
        .map(|(key, value)| (key.to_owned(), value.into()));
    removed.chain(set).collect()
}

/// One image of a node.
struct Entry<'a> {
    snapshot: &'a Snapshot<'a>,
    image: &'a NodeImage,
    name: &'a str,
    listed: &'a Image,
}

impl Entry<'_> {
    /// The merge patch that leaves in the entry what is wanted; null if that is nothing, `None` if nothing changes.
    fn tidied(&self, plan: &mut Plan, now: Timestamp) -> Option<Value> {
        let stored = self.listed.stored.get("tags").and_then(Value::as_array);
        let stored = stored.map(Vec::as_slice).unwrap_or_default();
        let tags = self.listed.tags.iter().zip(stored);
        let kept: Vec<Value> = tags
            .filter_map(|(tag, stored)| self.kept(tag, stored, plan, now))
            .collect();
        if kept.is_empty() {
            return Some(Value::Null);
        }
        let mut change = Map::new();
        if kept != stored {
            change.insert("tags".to_owned(), kept.into());
        }
        if let Some(secrets) = self.secrets() {
            change.insert("pullSecrets".to_owned(), secrets);
        }
        (!change.is_empty()).then_some(Value::Object(change))
    }

    /// The tag as it is kept: without the owners that are gone. `None` if it is not kept.
    fn kept(&self, tag: &ImageTag, stored: &Value, plan: &mut Plan, now: Timestamp) -> Option<Value> {
        let created = tag.created_at?;
        let owners: Vec<Owner> = tag
            .owner_references
            .iter()
            .map(|one| self.snapshot.jobs.owner(one))
            .collect();
        let exists = |owner: &Owner| *owner != Owner::Gone;
        let is_wanted = if is_injected("SharedTagRemoved") {
            owners.iter().all(exists)
        } else {
            owners.is_empty() || owners.iter().any(exists)
        };
        if !is_wanted {
            return None;
        }
        let is_needed = owners.contains(&Owner::Pulls);
        let status = self.image.round(self.name, tag);
        if let Some((ended, seconds)) = expiry(tag, status, created).filter(|_| !is_needed) {
            match jobs::left(ended, seconds, now) {
                None => return None,
                left => plan.requeue_after(left),
            }
        }
        let mut kept = stored.clone();
        if let Some(list) = kept.get_mut("ownerReferences").and_then(Value::as_array_mut) {
            let mut alive = owners.iter().map(exists);
            list.retain(|_| alive.next().unwrap_or(true));
        }
        Some(kept)
    }

    /// The secrets without those that are gone; `None` if none is. Shared copies stay: their controller deletes
    /// them, and the entry is removed with its tags.
    fn secrets(&self) -> Option<Value> {
        let all = &self.listed.pull_secrets;
        let is_gone = all
            .iter()
            .map(|secret| secret.mode.is_empty() && self.snapshot.secrets.exists(secret) == Some(false));
        let is_gone: Vec<bool> = is_gone.collect();
        let stored = self.listed.stored.get("pullSecrets").and_then(Value::as_array)?;
        let kept = stored.iter().zip(&is_gone).filter(|(_, is_gone)| !**is_gone);
        let kept: Vec<Value> = kept.map(|(secret, _)| secret.clone()).collect();
        is_gone.contains(&true).then_some(Value::Array(kept))
    }
}

/// When the pull ended, and how many seconds the tag is kept after that.
fn expiry(tag: &ImageTag, status: Option<&TagStatus>, created: Timestamp) -> Option<(Timestamp, i64)> {
    let status = status?;
    let ttl = i64::from(tag.pull_policy.ttl_seconds_after_finished?);
    match status.completion_time {
        Some(completed) => Some((completed, ttl)),
        // The manager gave up waiting, and the node has not reported an end.
        None if status.has_failed() => Some((created, RESPONSE_SECONDS.saturating_add(ttl))),
        None => None,
    }
}
