//! What is reported. Clients match on the messages.

use super::reasons;
use kruise_plan_kit::EventNote;
use kruise_views::PodView;

pub(super) fn no_pods() -> EventNote {
    EventNote::new(&reasons::NO_PODS, "No matching pods found")
}

pub(super) fn unreadable(error: &str) -> EventNote {
    EventNote::new(
        &reasons::EXPECTED_UNREADABLE,
        format!("Failed to calculate the number of expected pods: {error}"),
    )
}

pub(super) fn not_deleted(pod: &PodView, budget: &str) -> EventNote {
    let message = format!("Pod was expected by PUB {budget} to be deleted but it wasn't");
    EventNote::new(&reasons::NOT_DELETED, message).on(pod)
}
