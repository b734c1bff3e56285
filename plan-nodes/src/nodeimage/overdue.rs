//! Tags on which the agent of the node does not report.

use jiff::Timestamp;
use kruise_api::nodeimage::{ImageStatus, ImageTag, KIND, NodeImage, ObjectReference, TagStatus};
use kruise_plan_kit::{EventNote, Involved, Plan, StatusPatch, events, image, jobs};
use serde_json::{Map, Value, json};

use super::plan::target;

/// Seconds within which an agent begins to report, and within which it reports an end after its deadline.
pub(super) const RESPONSE_SECONDS: i64 = 600;

/// Messages that clients match on.
const SILENT: &str = "node has not responded for a long time";
const LATE: &str = "pulling exceeds the activeDeadlineSeconds";

/// Reports the tags as failed on which no agent reports in time. Adds to the plan when the next one would be.
pub(super) fn judge(node: &NodeImage, plan: &mut Plan, now: Timestamp) {
    let mut statuses = node.status.image_statuses.clone();
    let mut has_failed = false;
    for (name, entry) in &node.images {
        for tag in &entry.tags {
            let Some(message) = overdue(node, name, tag, plan, now) else {
                continue;
            };
            // Nothing ends a silent agent's round: if it reports later, it goes on.
            let end = (message == LATE).then_some(now);
            fail(statuses.entry(name.clone()).or_default(), tag, message, end);
            plan.events.extend(announce(node, name, tag, message));
            has_failed = true;
        }
    }
    if has_failed {
        drop_unlisted(node, &mut statuses);
        plan.status = Some(report(node, &statuses));
    }
}

/// Why the tag has failed, if it has.
fn overdue(
    node: &NodeImage,
    name: &str,
    tag: &ImageTag,
    plan: &mut Plan,
    now: Timestamp,
) -> Option<&'static str> {
    let created = tag.created_at?;
    let (seconds, message) = match node.round(name, tag) {
        None => (RESPONSE_SECONDS, SILENT),
        Some(status) if status.completion_time.is_some() || status.has_failed() || status.has_succeeded() => {
            return None;
        }
        Some(_) => (
            tag.pull_policy
                .active_deadline_seconds?
                .saturating_add(RESPONSE_SECONDS),
            LATE,
        ),
    };
    match jobs::left(created, seconds, now) {
        None => Some(message),
        left => {
            plan.requeue_after(left);
            None
        }
    }
}

/// Records that the current round of the tag has failed. An agent takes it for ended if it has a time of its end.
fn fail(image: &mut ImageStatus, tag: &ImageTag, message: &str, end: Option<Timestamp>) {
    let found = image.tags.iter().position(|status| status.tag == tag.tag);
    let known = found.and_then(|index| image.tags.get(index));
    let of_round = known.filter(|status| status.version == tag.version);
    let failed = TagStatus {
        phase: TagStatus::FAILED.into(),
        message: message.into(),
        completion_time: end,
        ..of_round.cloned().unwrap_or(TagStatus {
            tag: tag.tag.clone(),
            version: tag.version,
            ..TagStatus::default()
        })
    };
    match found.and_then(|index| image.tags.get_mut(index)) {
        Some(status) => *status = failed,
        None => image.tags.push(failed),
    }
    image.tags.sort_by(|one, other| one.tag.cmp(&other.tag));
}

/// Removes the states of what the node does not have to have any more.
fn drop_unlisted(node: &NodeImage, statuses: &mut std::collections::BTreeMap<String, ImageStatus>) {
    statuses.retain(|name, image| {
        image.tags.retain(|status| node.tag(name, &status.tag).is_some());
        !image.tags.is_empty()
    });
}

/// The status with these states, and their numbers.
fn report(node: &NodeImage, statuses: &std::collections::BTreeMap<String, ImageStatus>) -> StatusPatch {
    let (mut pulling, mut succeeded, mut failed) = (0, 0, 0);
    let tags = node
        .images
        .iter()
        .flat_map(|(name, image)| image.tags.iter().map(move |tag| (name, tag)));
    let desired = tags.clone().count();
    for (name, tag) in tags {
        let status = statuses
            .get(name)
            .and_then(|image| image.tags.iter().find(|one| one.tag == tag.tag));
        let phase = status
            .filter(|status| status.version == tag.version)
            .map(|status| &*status.phase);
        match phase {
            Some(TagStatus::PULLING) => pulling += 1,
            Some(TagStatus::SUCCEEDED) => succeeded += 1,
            Some(TagStatus::FAILED) => failed += 1,
            _ => {}
        }
    }
    let mut images: Map<String, Value> = Map::new();
    let before = &node.status.image_statuses;
    let removed = before.keys().filter(|name| !statuses.contains_key(*name));
    images.extend(removed.map(|name| (name.clone(), Value::Null)));
    let changed = statuses
        .iter()
        .filter(|(name, image)| before.get(*name) != Some(image));
    images.extend(changed.map(|(name, image)| (name.clone(), json!({"tags": image.tags}))));
    StatusPatch {
        target: target(&node.metadata.name),
        version: node.metadata.resource_version.clone(),
        patch: json!({"status": {
            "desired": desired, "pulling": pulling, "succeeded": succeeded, "failed": failed, "imageStatuses": images,
        }}),
        urgent: true,
    }
}

/// The event, on the NodeImage and on everything that wants the tag.
fn announce<'a>(
    node: &'a NodeImage,
    name: &'a str,
    tag: &'a ImageTag,
    message: &'a str,
) -> impl Iterator<Item = EventNote> + 'a {
    let (image, on) = (image::reference(name, &tag.tag), &node.metadata.name);
    let text = format!("Failed to pull image {image} on node {on} for {message}");
    let event = EventNote::new(&events::PULL_IMAGE_FAILED, text);
    let own = Involved {
        api_version: node.api_version.as_str().into(),
        kind: KIND.kind.into(),
        name: node.metadata.name.as_str().into(),
        uid: node.metadata.uid.as_str().into(),
        resource_version: node.metadata.resource_version.as_str().into(),
        ..Involved::default()
    };
    let owners = tag.owner_references.iter().map(involved);
    owners.chain([own]).map(move |object| event.clone().about(object))
}

fn involved(owner: &ObjectReference) -> Involved {
    Involved {
        api_version: owner.api_version.as_str().into(),
        kind: owner.kind.as_str().into(),
        namespace: owner.namespace.as_str().into(),
        name: owner.name.as_str().into(),
        uid: owner.uid.as_str().into(),
        resource_version: "".into(),
    }
}
