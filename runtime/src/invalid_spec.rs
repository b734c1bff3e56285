//! The plan of an object whose specification cannot be parsed.

use std::fmt::Display;

use kruise_plan_kit::{EventNote, Plan, events};

/// Emits an event and writes nothing.
pub fn plan(error: &impl Display) -> Plan {
    let message = format!("the specification cannot be read: {error}");
    let note = EventNote::new(&events::INVALID_SPEC, message);
    Plan {
        events: vec![note],
        ..Plan::default()
    }
}
