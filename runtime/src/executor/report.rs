//! What a run came to.

use kruise_plan_kit::{EventNote, Holder, ResourceId, Target};
use kube_cache::Expectation;

use super::StatusForm;

/// How one step of one object ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepResult {
    /// The server did it.
    Done,
    /// A create found its own object: an earlier reply was lost.
    Adopted,
    /// The object to change or delete no longer exists.
    Gone,
    /// Not deleted: what uses it exists.
    Spared,
    /// It failed, which ended the writes of its object.
    Failed(Failure),
    /// Never sent: the writes of its object, its phase or the run ended before.
    Skipped,
}

/// Why a step failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A precondition did not hold: plan again from newer state.
    Conflict(String),
    /// The name belongs to an object of somebody else, or to one that is going away: plan another name.
    NameTaken(String),
    /// The server refused for this reason; nothing was written.
    Refused(String),
    /// It is not known whether the write happened: read the server, then plan again.
    Unknown(String),
}

impl Failure {
    /// Is it routine, to be settled by the next plan alone?
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict(_) | Self::NameTaken(_))
    }

    /// The sentence for people.
    pub fn message(&self) -> &str {
        match self {
            Self::Conflict(message)
            | Self::NameTaken(message)
            | Self::Refused(message)
            | Self::Unknown(message) => message,
        }
    }
}

/// What a run came to: everything its owner's next plan, gate and user need to know.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Results by object, then step, in the order of the plan.
    pub steps: Vec<Vec<StepResult>>,
    /// What the caches must show before the owner is planned again.
    pub expectations: Vec<Expectation<ResourceId>>,
    /// Events of steps that ended, in the order they ended.
    pub events: Vec<EventNote>,
    /// Names the planner must not choose again.
    pub taken: Vec<Target>,
    /// What has the names that were taken, by name, where it was seen.
    pub holders: Vec<(String, Holder)>,
    /// Failures in the order in which they came.
    pub failures: Vec<Failure>,
    /// How this server takes status patches that also change metadata; pass it to the next run.
    pub status_form: StatusForm,
}

impl Report {
    /// Whether some write may or may not have happened, so that the next plan needs a live read.
    pub fn needs_live_read(&self) -> bool {
        let mut results = self.steps.iter().flatten();
        results.any(|result| matches!(result, StepResult::Failed(Failure::Unknown(_))))
    }

    /// The failure that decides when to try again: the first that is no conflict, or else the first.
    pub fn weightiest_failure(&self) -> Option<&Failure> {
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
