//! Conditions of a workload's status.

use jiff::Timestamp;
use kruise_api::{condition::Condition, names::conditions};

use crate::Memory;

/// The condition of this type.
pub fn get<'c>(conditions: &'c [Condition], kind: &str) -> Option<&'c Condition> {
    conditions.iter().find(|condition| condition.kind == kind)
}

/// Is the condition of this type True?
pub fn is_true(conditions: &[Condition], kind: &str) -> bool {
    get(conditions, kind).is_some_and(|condition| condition.status == "True")
}

/// Conditions as kinds have them that do not say when they were last confirmed.
pub fn without_updates(mut all: Vec<Condition>) -> Vec<Condition> {
    for condition in &mut all {
        condition.last_update_time = None;
    }
    all
}

/// Sets the condition of a type, whose `last_transition_time` becomes `now` if its status is another one.
pub fn set(
    all: &mut Vec<Condition>,
    kind: &str,
    (status, reason): (&str, &str),
    message: String,
    now: Timestamp,
) {
    let slot = all.iter_mut().find(|condition| condition.kind == kind);
    let kept = slot.as_ref().filter(|before| before.status == status);
    let condition = Condition {
        kind: kind.into(),
        status: status.into(),
        last_update_time: Some(now),
        last_transition_time: kept.map_or(Some(now), |before| before.last_transition_time),
        reason: reason.into(),
        message,
    };
    match slot {
        Some(slot) => *slot = condition,
        None => all.push(condition),
    }
}

/// `FailedScale` and `FailedUpdate` report the error of the last attempt, and become False when there is none. An
/// update has also failed where a node can never give what it asks for: that is `refused`. Returns since when
/// writes have failed, if the last attempt did.
pub fn failures(
    all: &mut Vec<Condition>,
    memory: &Memory,
    refused: Option<&String>,
    now: Timestamp,
) -> Option<Timestamp> {
    let mut since = None;
    for (kind, failed, refused) in [
        (conditions::FAILED_SCALE, &memory.scale_error, None),
        (conditions::FAILED_UPDATE, &memory.update_error, refused),
    ] {
        let error = failed.as_ref().or(refused);
        let (status, reason) = match error {
            Some(_) => ("True", conditions::LAST_ATTEMPT_FAILED),
            None => ("False", conditions::RECOVERED),
        };
        let message = error.cloned().unwrap_or_default();
        match get(all, kind) {
            None if error.is_none() => {}
            Some(before) if before.status == status && before.message == message => {}
            _ => set(all, kind, (status, reason), message, now),
        }
        let failing = get(all, kind).filter(|_| failed.is_some());
        let failing = failing.and_then(|condition| condition.last_transition_time);
        since = since.into_iter().chain(failing).min();
    }
    since
}
