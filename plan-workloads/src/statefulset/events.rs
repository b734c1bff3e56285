//! The words of events. Clients match on them.

use std::fmt::Display;

use super::reasons;
use kruise_plan_kit::{
    EventNote, FailureNote, Owner, Step, events,
    events::Reason,
    rollout::{Deletions, Words},
};

/// How pods are deleted: each has a place of its own, so that none comes back for want of others.
pub(super) static DELETIONS: Deletions = Deletions {
    removed: |owner, pod| deletion(owner, pod),
    recreated: |owner, pod, _| deletion(owner, pod),
    requested: None,
};

fn deletion(owner: &Owner<'_>, pod: &str) -> Words {
    of_pod(
        "delete",
        &events::SUCCESSFUL_DELETE,
        &events::FAILED_DELETE,
        owner,
        pod,
    )
}

/// Reports the creation of a pod.
pub(super) fn creation(owner: &Owner<'_>, pod: &str) -> Words {
    of_pod(
        "create",
        &events::SUCCESSFUL_CREATE,
        &events::FAILED_CREATE,
        owner,
        pod,
    )
}

/// Reports the repair of a pod.
pub(super) fn repair(owner: &Owner<'_>, pod: &str) -> Words {
    of_pod(
        "update",
        &reasons::SUCCESSFUL_UPDATE,
        &events::FAILED_UPDATE,
        owner,
        pod,
    )
}

fn of_pod(verb: &str, done: &'static Reason, failed: &'static Reason, owner: &Owner<'_>, pod: &str) -> Words {
    let what = format!("{verb} Pod {pod} in StatefulSet {}", owner.name);
    Words {
        done: EventNote::new(done, format!("{what} successful")),
        failed: FailureNote::new(failed, format!("{what} failed error: ")),
    }
}

/// Reports the creation of a claim for a pod.
pub(super) fn claim_creation(owner: &Owner<'_>, claim: &str, pod: &str) -> Words {
    of_claim(
        "create",
        &events::SUCCESSFUL_CREATE,
        &events::FAILED_CREATE,
        owner,
        (claim, pod),
    )
}

/// Reports that a claim asks for more storage.
pub(super) fn claim_resize(owner: &Owner<'_>, claim: &str, pod: &str) -> Words {
    of_claim(
        "resize",
        &reasons::SUCCESSFUL_RESIZE,
        &reasons::FAILED_RESIZE,
        owner,
        (claim, pod),
    )
}

fn of_claim(
    verb: &str,
    done: &'static Reason,
    failed: &'static Reason,
    owner: &Owner<'_>,
    (claim, pod): (&str, &str),
) -> Words {
    let set = owner.name;
    let done_text = format!("{verb} Claim {claim} Pod {pod} in StatefulSet {set} success");
    let failed_text = format!("{verb} Claim {claim} for Pod {pod} in StatefulSet {set} failed error: ");
    Words {
        done: EventNote::new(done, done_text),
        failed: FailureNote::new(failed, failed_text),
    }
}

/// The event of a pod that cannot be created now.
pub(super) fn not_created(owner: &Owner<'_>, pod: &str, why: impl Display) -> EventNote {
    let text = format!(
        "create Pod {pod} in StatefulSet {} failed error: {why}",
        owner.name
    );
    EventNote::new(&events::FAILED_CREATE, text)
}

/// The event of a set that reserves so many ordinals that some pods have none.
pub(super) fn no_ordinal(owner: &Owner<'_>, why: impl Display) -> EventNote {
    let text = format!("create pods in StatefulSet {} failed error: {why}", owner.name);
    EventNote::new(&events::FAILED_CREATE, text)
}

/// A step that is reported so.
pub(super) fn reported(mut step: Step, words: Words) -> Step {
    step.done = Some(words.done);
    step.failed = Some(words.failed);
    step
}
