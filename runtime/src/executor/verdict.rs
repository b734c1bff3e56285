//! What the response to a call means for its step.

use kruise_plan_kit::injected::is_injected;
use kruise_plan_kit::{Part, Precondition, Step, Target, Write};

use super::machine::Stage;
use super::split::halves;
use super::{Failure, StatusForm, StepResult, Stored};
use crate::ApiError;

/// The object that is read before this write.
pub(super) fn related(write: &Write) -> Option<&Target> {
    write.precondition()?.related()
}

/// Why the owner of what was created does not find it; `None` if it does.
pub(super) fn lost(step: &Step, stored: &Stored) -> Option<String> {
    let (
        Write::Create {
            target, owner_uid, ..
        },
        Some(selector),
    ) = (&step.write, &step.found_by)
    else {
        return None;
    };
    let what = if stored.name != target.name {
        "another name"
    } else if stored.controller != *owner_uid {
        "another controller"
    } else if !selector.matches_by(|key| stored.labels.get(key).map(String::as_str)) {
        "labels that the selector does not match"
    } else {
        return None;
    };
    Some(format!(
        "it came into being with {what}, and was deleted again: something changes new pods on their way, such as a webhook or \
         a patch that it applies"
    ))
}

/// What follows a response.
pub(super) enum Verdict {
    /// Another call of the same step.
    Next(Stage),
    /// The object is read: this refusal may be a failed precondition.
    Check(String),
    /// The status half is done; the metadata half follows.
    Continue(Stage, Stored),
    Done(StepResult, Stored),
    /// Nothing to do for this step and all later ones.
    End(StepResult),
    Failed(Failure),
}

/// `refusal` is the server's answer to the write, if `outcome` is that of the read that followed.
pub(super) fn verdict(
    write: &Write,
    stage: Stage,
    outcome: Result<Stored, ApiError>,
    form: StatusForm,
    refusal: Option<String>,
) -> Verdict {
    match (outcome, refusal) {
        (Ok(stored), Some(refusal)) => checked(write, &stored, refusal),
        (Ok(stored), None) => accepted(write, stage, stored),
        (Err(error), Some(refusal)) if !error.is_not_found() => Verdict::Failed(Failure::Refused(refusal)),
        (Err(error), _) => refused(write, stage, &error, form),
    }
}

/// What a refusal with 422 meant, by the object as it is now.
fn checked(write: &Write, now: &Stored, refusal: String) -> Verdict {
    match write {
        Write::Patch { precondition, .. } if precondition.uid().is_some_and(|uid| uid != now.uid) => {
            Verdict::End(StepResult::Gone)
        }
        Write::Patch {
            precondition: Precondition::Test(_, expected),
            ..
        } if now.value.as_ref() != Some(expected) => Verdict::Failed(Failure::Conflict(refusal)),
        _ => Verdict::Failed(Failure::Refused(refusal)),
    }
}

fn accepted(write: &Write, stage: Stage, stored: Stored) -> Verdict {
    match (stage, write) {
        (
            Stage::ReadExisting,
            Write::Create {
                target, owner_uid, ..
            },
        ) => {
            let is_ours = stored.controller == *owner_uid;
            if is_ours && !stored.is_terminating {
                return Verdict::Done(StepResult::Adopted, stored);
            }
            Verdict::Failed(Failure::NameTaken(format!("{target} already exists")))
        }
        (Stage::ReadRelated, _) => related_found(write, &stored),
        (Stage::StatusHalf, _) => Verdict::Continue(Stage::MetadataHalf, stored),
        _ => Verdict::Done(StepResult::Done, stored),
    }
}

/// What an existing related object means for the write.
fn related_found(write: &Write, found: &Stored) -> Verdict {
    match write.precondition() {
        Some(Precondition::Owned { owner_uid, .. }) if found.uid == *owner_uid && !found.is_terminating => {
            Verdict::Next(Stage::WriteChecked)
        }
        Some(Precondition::Owned { owner, .. }) => {
            Verdict::Failed(Failure::Conflict(format!("{owner} is deleted or another one")))
        }
        _ => Verdict::End(StepResult::InUse),
    }
}

/// What a failed read of the related object means for the write.
fn related_missing(write: &Write, error: &ApiError) -> Verdict {
    let message = error.to_string();
    if !error.is_not_found() {
        return Verdict::Failed(Failure::Refused(message));
    }
    match write.precondition() {
        Some(Precondition::Owned { .. }) => Verdict::Failed(Failure::Conflict(message)),
        _ => Verdict::Next(Stage::WriteChecked),
    }
}

fn refused(write: &Write, stage: Stage, error: &ApiError, form: StatusForm) -> Verdict {
    let message = error.to_string();
    match write {
        Write::Create { .. } if stage == Stage::Write && error.is_already_exists() => {
            return Verdict::Next(Stage::ReadExisting);
        }
        // The existing object was deleted meanwhile: plan again.
        Write::Create { .. } if stage == Stage::ReadExisting && error.is_not_found() => {
            return Verdict::Failed(Failure::Conflict(message));
        }
        _ if stage == Stage::ReadRelated => return related_missing(write, error),
        // The object is already deleted: success. The expectation is met, and later steps follow.
        Write::Delete { .. } if error.is_not_found() => {
            return Verdict::Done(StepResult::Gone, Stored::default());
        }
        Write::Patch {
            part: part @ (Part::Resize | Part::EphemeralContainers),
            target,
            ..
        } if error.is_unknown_path(&target.name) => {
            let why = format!("the server lets nobody {}: {message}", part.purpose());
            return Verdict::Failed(Failure::Refused(why));
        }
        Write::Patch { .. } if error.is_not_found() => return Verdict::End(StepResult::Gone),
        Write::Patch {
            part: Part::Status,
            patch,
            ..
        } if stage == Stage::Write
            && form == StatusForm::Merged
            && refuses_content(error)
            && halves(patch).is_some() =>
        {
            return Verdict::Next(Stage::StatusHalf);
        }
        Write::Patch { .. } if error.is_invalid() => return Verdict::Check(message),
        _ => {}
    }
    let is_new = matches!(write, Write::Create { .. }) && stage == Stage::Write && error.may_have_happened();
    if is_injected("LostReplyRetried") && is_new {
        return Verdict::Failed(Failure::NameTaken(message));
    }
    Verdict::Failed(if error.is_conflict() {
        Failure::Conflict(message)
    } else if stage == Stage::ReadExisting || error.may_have_happened() {
        // Without the existing object, its owner is unknown.
        Failure::Unknown(message)
    } else {
        Failure::Refused(message)
    })
}

/// Whether a client error is about the content of the request, not about its target, its credentials or its rate.
fn refuses_content(error: &ApiError) -> bool {
    let code = error.status().map(|status| status.code);
    code.is_some_and(|code| (400..500).contains(&code) && !matches!(code, 401 | 404 | 409 | 429))
}
