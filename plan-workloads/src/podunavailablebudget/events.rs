//! What is reported. Clients match on the messages.

use kruise_api::names::events::{EventKind, Reason};
use kruise_plan_kit::EventNote;
use kruise_views::PodView;

static NO_PODS: Reason = Reason {
    name: "NoPods",
    kind: EventKind::Normal,
    on: &["PodUnavailableBudget"],
    when: "The budget covers no pods.",
};

static UNREADABLE: Reason = Reason {
    name: "CalculateExpectedPodCountFailed",
    kind: EventKind::Warning,
    on: &["PodUnavailableBudget"],
    when: "maxUnavailable or minAvailable cannot be read; the budget is not counted.",
};

static NOT_DELETED: Reason = Reason {
    name: "NotDeleted",
    kind: EventKind::Warning,
    on: &["Pod"],
    when: "A deletion or an eviction that a budget allowed did not happen within 20 seconds.",
};

pub(super) fn no_pods() -> EventNote {
    EventNote::new(&NO_PODS, "No matching pods found")
}

pub(super) fn unreadable(error: &str) -> EventNote {
    EventNote::new(
        &UNREADABLE,
        format!("Failed to calculate the number of expected pods: {error}"),
    )
}

pub(super) fn not_deleted(pod: &PodView, budget: &str) -> EventNote {
    let message = format!("Pod was expected by PUB {budget} to be deleted but it wasn't");
    EventNote::new(&NOT_DELETED, message).on(pod)
}
