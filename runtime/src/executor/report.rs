//! The result of a run.

use kruise_plan_kit::{EventNote, Holder, ResourceId, Target, Write};
use kube_cache::Expectation;

use super::StatusForm;

/// How one step of one object ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepResult {
    /// The write succeeded.
    Done,
    /// A create found an object of the same owner: an earlier response was lost.
    Adopted,
    /// The object to change or delete no longer exists.
    Gone,
    /// Not deleted, because another object uses it.
    InUse,
    /// It failed. Later steps of its object are skipped.
    Failed(Failure),
    /// Not sent, because an earlier step of its object or phase failed or the run was stopped.
    Skipped,
}

/// Why a step failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A precondition failed: plan again with newer state.
    Conflict(String),
    /// The name belongs to an object of another owner, or to a terminating one: plan another name.
    NameTaken(String),
    /// The server refused the request for this reason; nothing was written.
    Refused(String),
    /// It is unknown whether the write took effect: read the object, then plan again.
    Unknown(String),
}

/// An object of which it is unknown whether a write took effect.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Doubt {
    /// Which object.
    pub target: Target,
    /// Its uid; `None` for an object that was to be created.
    pub uid: Option<String>,
}

impl Failure {
    /// Whether the next plan resolves it without an error or an event.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict(_) | Self::NameTaken(_))
    }

    /// The message for users.
    pub fn message(&self) -> &str {
        match self {
            Self::Conflict(message)
            | Self::NameTaken(message)
            | Self::Refused(message)
            | Self::Unknown(message) => message,
        }
    }
}

/// The result of a run, for the owner's next plan, its expectations and its events.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Results by object, then step, in the order of the plan.
    pub steps: Vec<Vec<StepResult>>,
    /// Expectations to be met before the owner is planned again.
    pub expectations: Vec<Expectation<ResourceId>>,
    /// Events of steps that ended, in the order they ended.
    pub events: Vec<EventNote>,
    /// Names that the next plan must not use again.
    pub taken: Vec<Target>,
    /// Objects that have the taken names, by name, where they could be read.
    pub holders: Vec<(String, Holder)>,
    /// Failures in the order in which they occurred.
    pub failures: Vec<Failure>,
    /// Objects that were created or adopted, with their uids.
    pub created: Vec<(Target, String)>,
    /// Objects that must be read before the next plan.
    pub doubts: Vec<Doubt>,
    /// Copies whose contents were written, with the version that this gave them.
    pub copied: Vec<(Target, String)>,
    /// How this server accepts status patches that also change metadata; pass it to the next run.
    pub status_form: StatusForm,
}

impl Report {
    /// Notes the version that a write gave to a copy.
    pub(super) fn note_copy(&mut self, write: &Write, result: &StepResult, version: &str) {
        let is_content = !matches!(write, Write::Delete { .. });
        if is_content && write.intent().is_copy() && *result == StepResult::Done {
            self.copied.push((write.target().clone(), version.to_owned()));
        }
    }

    /// The failure that decides about the retry: the first one that is not a conflict, otherwise the first one.
    pub fn most_severe_failure(&self) -> Option<&Failure> {
        let is_conflict =
            |failure: &&Failure| matches!(failure, Failure::Conflict(_) | Failure::NameTaken(_));
        let mut failures = self.failures.iter();
        failures
            .find(|failure| !is_conflict(failure))
            .or(self.failures.first())
    }

    /// Number of steps with a result for which `matches` holds.
    pub fn count(&self, matches: impl Fn(&StepResult) -> bool) -> usize {
        self.steps
            .iter()
            .flatten()
            .filter(|result| matches(result))
            .count()
    }
}
