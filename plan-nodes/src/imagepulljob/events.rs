//! The words of events.

use super::reasons;
use kruise_api::names::imagepulljob::CREDENTIAL_TYPES;
use kruise_plan_kit::{EventNote, events::INVALID_SPEC};

pub(super) fn no_node() -> EventNote {
    let message = "no node that the job selects has a NodeImage; it waits for one";
    EventNote::new(&reasons::NO_NODE, message)
}

pub(super) fn missing_secret(name: &str) -> EventNote {
    let message = format!(
        "pull secret {name} does not exist, or holds no credentials of images; nodes pull without it"
    );
    EventNote::new(&reasons::PULL_SECRET_MISSING, message)
}

pub(super) fn refused_secret(name: &str, kind: &str) -> EventNote {
    let types = CREDENTIAL_TYPES.join(" or ");
    let message = format!(
        "pull secret {name} has the type {kind}, not {types}; nodes cannot pull with it, and it is not copied"
    );
    EventNote::new(&reasons::PULL_SECRET_REFUSED, message)
}

pub(super) fn hidden_copies(name: &str, namespace: &str) -> EventNote {
    let message = format!(
        "pull secret {name} is not copied, because the manager does not watch namespace {namespace}; nodes pull without it"
    );
    EventNote::new(&reasons::FAILED_SECRET_COPY, message)
}

pub(super) fn change_ignored() -> EventNote {
    let message = "the job had ended before its specification was changed; create another job to pull again";
    EventNote::new(&reasons::CHANGE_IGNORED, message)
}

pub(super) fn invalid(problem: &str) -> EventNote {
    EventNote::new(&INVALID_SPEC, format!("no node is asked to pull: {problem}"))
}
