//! Conditions, as OpenKruise changes them.

use jiff::Timestamp;
use kruise_api::condition::JobCondition;
use kruise_plan_kit::{injected::is_injected, jobs::stored};

/// Sets the condition of a type. One with this status and reason stays as it is, whatever its message; one with
/// this status keeps its time.
pub(crate) fn set(
    all: &mut Vec<JobCondition>,
    kind: &str,
    (status, reason): (&str, &str),
    message: String,
    now: Timestamp,
) {
    let is_restless = is_injected("StatusRestless");
    let message = if is_restless { now.to_string() } else { message };
    let slot = all.iter_mut().find(|condition| condition.kind == kind);
    let before = slot
        .as_ref()
        .filter(|before| before.status == status && !is_restless);
    if before.is_some_and(|before| before.reason == reason) {
        return;
    }
    let condition = JobCondition {
        kind: kind.into(),
        status: status.into(),
        last_probe_time: None,
        last_transition_time: before.map_or(Some(stored(now)), |before| before.last_transition_time),
        reason: reason.into(),
        message,
    };
    match slot {
        Some(slot) => *slot = condition,
        None => all.push(condition),
    }
}
