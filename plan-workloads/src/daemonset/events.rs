//! The words of events. Clients match on them.

use super::reasons;
use kruise_plan_kit::{
    EventNote, FailureNote, Owner, Step, events,
    rollout::{Deletions, Words},
};
use kruise_views::PodView;

/// How pods are deleted.
pub(super) static DELETIONS: Deletions = Deletions {
    removed: |_, pod| deletion(pod),
    recreated: |_, pod, _| deletion(pod),
    requested: None,
};

fn deletion(pod: &str) -> Words {
    Words {
        done: EventNote::new(&events::SUCCESSFUL_DELETE, format!("Deleted pod: {pod}")),
        failed: FailureNote::new(&events::FAILED_DELETE, "Error deleting: ".into()),
    }
}

/// Reports the creation of a pod.
pub(super) fn creation(mut step: Step, pod: &str) -> Step {
    step.done = Some(EventNote::new(
        &events::SUCCESSFUL_CREATE,
        format!("Created pod: {pod}"),
    ));
    step.failed = Some(FailureNote::new(
        &events::FAILED_CREATE,
        "Error creating: ".into(),
    ));
    step
}

/// Reports an update in place.
pub(super) fn updated_in_place(pod: &str, revision: &str) -> Words {
    let hash = kruise_plan_kit::revision::short_hash(revision);
    Words {
        done: EventNote::new(
            &events::SUCCESSFUL_IN_PLACE,
            format!("successfully update pod {pod} in-place"),
        ),
        failed: FailureNote::new(
            &events::FAILED_IN_PLACE,
            format!("failed to update pod {pod} in-place(revision {hash}): "),
        ),
    }
}

/// The event of a pod that has ended, and is replaced.
pub(super) fn failed_pod(view: &PodView, node: &str) -> EventNote {
    let text = format!(
        "Pod {}/{} on node {node} has failed and is deleted, to be created anew",
        view.namespace, view.name
    );
    EventNote::new(&reasons::FAILED_DAEMON_POD, text)
}

/// The event of a set whose selector is empty.
pub(super) fn selecting_all(owner: &Owner<'_>) -> EventNote {
    let text = format!(
        "DaemonSet {} selects all pods: its selector must not be empty",
        owner.name
    );
    EventNote::new(&reasons::SELECTING_ALL, text)
}
