//! The plan of an object whose specification cannot be parsed.

use std::fmt::Display;

use kruise_plan_kit::{EventNote, Plan, events};

/// Emits an event and writes nothing.
pub(super) fn plan(error: &impl Display) -> Plan {
    let note = EventNote {
        reason: &events::INVALID_SPEC,
        message: format!("the specification cannot be read: {error}"),
    };
    Plan {
        events: vec![note],
        ..Plan::default()
    }
}
