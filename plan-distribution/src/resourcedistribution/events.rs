//! The words of events.

use kruise_plan_kit::{EventNote, events::INVALID_SPEC};

use super::reasons;
use super::source::Source;

/// How many namespaces a message names.
const NAMED: usize = 5;

pub(super) fn invalid(problem: &str) -> EventNote {
    EventNote::new(&INVALID_SPEC, format!("nothing is distributed: {problem}"))
}

pub(super) fn distributed(source: &Source<'_>, namespaces: i32) -> EventNote {
    let Source { kind, name, .. } = source;
    let message = format!("{kind} {name} is in all {namespaces} namespaces");
    EventNote::new(&reasons::DISTRIBUTED, message)
}

pub(super) fn conflict(source: &Source<'_>, namespaces: &[String]) -> EventNote {
    let Source { kind, name, .. } = source;
    let message = format!(
        "{kind} {name} exists and is controlled by nobody or by somebody else, and stays as it is, in {}",
        some_of(namespaces)
    );
    EventNote::new(&reasons::COPY_CONFLICT, message)
}

pub(super) fn system_copy_removed(source: &Source<'_>, namespace: &str) -> EventNote {
    let Source { kind, name, .. } = source;
    let message = format!("{kind} {name} was deleted in {namespace}, because system namespaces get no copy");
    EventNote::new(&reasons::SYSTEM_COPY_REMOVED, message)
}

/// The first names, and how many more there are.
pub(super) fn some_of(names: &[String]) -> String {
    let named = names
        .iter()
        .take(NAMED)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    match names.len().checked_sub(NAMED) {
        Some(more) if more > 0 => format!("{named} and {more} more"),
        _ => named,
    }
}
