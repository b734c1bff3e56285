//! The writes to pods that several decisions share.

use jiff::Timestamp;
use kruise_api::names::REVISION_HASH;
use kruise_api::names::events::Reason;
use kruise_plan_kit::{
    Body, Chain, EventNote, FailureNote, Intent, Pace, Part, Patch, Precondition, ResourceId, Step, Target,
    Wave, Write, events, lifecycle::State, put, readiness, revision,
};
use kruise_views::PodView;
use serde_json::{Value, json};

use super::observe::Observed;

/// The controller reference to the set.
pub(super) fn owner_reference(observed: &Observed<'_>) -> Value {
    json!({
        "apiVersion": observed.api_version,
        "kind": "CloneSet",
        "name": observed.set.metadata.name,
        "uid": observed.set.metadata.uid,
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// Is the pod labelled with this revision, in full or by hash?
pub(super) fn on_revision(pod: &PodView, revision_name: &str) -> bool {
    pod.labels
        .get(REVISION_HASH)
        .is_some_and(|label| go_compat::revision::label_matches_revision(label, revision_name))
}

/// A pod as a target.
pub(super) fn target(pod: &PodView) -> Target {
    Target {
        resource: ResourceId::PODS,
        namespace: pod.namespace.to_string(),
        name: pod.name.to_string(),
    }
}

/// A chain over one pod.
pub(super) fn chain(steps: Vec<Step>) -> Chain {
    Chain {
        wave: Wave::Pods,
        pace: Pace::Bounded,
        steps,
    }
}

/// A strategic merge patch of a pod, guarded by its uid.
pub(super) fn patch(
    pod: &PodView,
    intent: Intent,
    part: Part,
    patch: impl Into<Body>,
    reason: String,
) -> Step {
    let precondition = Precondition::Uid(pod.uid.to_string());
    guarded(pod, intent, part, patch.into(), precondition, reason)
}

/// As [`patch`], for changes that would be wrong if the pod changed unseen.
pub(super) fn patch_exact(
    pod: &PodView,
    intent: Intent,
    part: Part,
    patch: impl Into<Body>,
    reason: String,
) -> Step {
    let precondition = Precondition::UidAndVersion(pod.uid.to_string(), pod.resource_version.to_string());
    guarded(pod, intent, part, patch.into(), precondition, reason)
}

fn guarded(
    pod: &PodView,
    intent: Intent,
    part: Part,
    patch: Body,
    precondition: Precondition,
    reason: String,
) -> Step {
    let patch = Patch::Strategic(patch);
    let write = Write::Patch {
        intent,
        target: target(pod),
        part,
        patch,
        precondition,
    };
    Step {
        write,
        reason,
        done: None,
        failed: None,
    }
}

/// Moves a pod to another state of its life, with these further members of `metadata`. Hooks that mark pods put it out
/// of service, or let it back, in the same request.
pub(super) fn turn(
    observed: &Observed<'_>,
    pod: &PodView,
    next: (Intent, State),
    further: &[(&[&str], Value)],
    reason: String,
    now: Timestamp,
) -> Step {
    let (intent, next) = next;
    let mut metadata = next.metadata(now);
    for (path, value) in further {
        put(&mut metadata, path, value.clone());
    }
    let lifecycle = observed.set.spec.lifecycle.as_ref();
    let conditions = readiness::settle(pod, next, lifecycle, now);
    if conditions.is_empty() {
        return patch(pod, intent, Part::Main, json!({"metadata": metadata}), reason);
    }
    let body = json!({"metadata": metadata, "status": {"conditions": conditions}});
    patch_exact(pod, intent, Part::Status, body, reason)
}

/// Deletion of a pod, with the events users know.
pub(super) fn delete(pod: &PodView, reason: String) -> Step {
    let write = Write::Delete {
        intent: Intent::DeletePod,
        target: target(pod),
        precondition: Precondition::Uid(pod.uid.to_string()),
    };
    Step {
        write,
        reason,
        done: Some(event(
            &events::SUCCESSFUL_DELETE,
            format!("succeed to delete pod {}", pod.name),
        )),
        failed: Some(failure(
            &events::FAILED_DELETE,
            format!("failed to delete pod {}: ", pod.name),
        )),
    }
}

/// An event.
pub(super) fn event(reason: &'static Reason, message: String) -> EventNote {
    EventNote { reason, message }
}

/// A warning that ends in the error.
pub(super) fn failure(reason: &'static Reason, prefix: String) -> FailureNote {
    FailureNote {
        reason,
        prefix,
        suffix: String::new(),
    }
}

/// The short hash of a revision.
pub(super) fn hash_of(name: &str) -> &str {
    revision::short_hash(name)
}
