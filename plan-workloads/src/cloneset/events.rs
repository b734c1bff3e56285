//! The words of events about pods. Clients match on them.

use super::reasons;
use kruise_plan_kit::{
    EventNote, FailureNote, Owner, events,
    rollout::{Deletions, Words},
};

/// How pods are deleted: a shortage of pods brings one that a hook holds back into service, unless its label asks
/// for its deletion.
pub(super) static DELETIONS: Deletions = Deletions {
    removed,
    recreated,
    requested: Some(requested),
};

fn removed(_: &Owner<'_>, pod: &str) -> Words {
    Words {
        done: EventNote::new(&events::SUCCESSFUL_DELETE, format!("succeed to delete pod {pod}")),
        failed: FailureNote::new(&events::FAILED_DELETE, format!("failed to delete pod {pod}: ")),
    }
}

fn recreated(_: &Owner<'_>, pod: &str, revision: &str) -> Words {
    let update = format!("for update(revision {revision})");
    let done = format!("successfully delete pod {pod} to recreate it {update}");
    Words {
        done: EventNote::new(&reasons::SUCCESSFUL_RECREATE, done),
        failed: FailureNote::new(
            &reasons::FAILED_RECREATE,
            format!("failed to delete pod {pod} {update}: "),
        ),
    }
}

fn requested(_: &Owner<'_>, pod: &str, revision: &str) -> Words {
    let update = format!("for update(revision {revision})");
    let done = format!("successfully patch pod {pod} specified-delete {update}");
    let failed = format!("failed to patch pod specified-delete {pod} {update}: ");
    Words {
        done: EventNote::new(&reasons::SUCCESSFUL_RECREATE, done),
        failed: FailureNote::new(&reasons::FAILED_RECREATE, failed),
    }
}
