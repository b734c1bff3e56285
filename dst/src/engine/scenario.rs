//! A scenario: what users do and which faults happen, and when. Everything else follows from its seed.
//!
//! Scenarios are data, so that they can be shortened, kept in a file and played again.

use std::collections::BTreeMap;

use anyhow::Context;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

/// A scenario from an empty cluster to the last step. Times are milliseconds after the subjects were created.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Decides latencies, names and uids.
    pub seed: u64,
    /// The injected bug, in builds that have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bug: Option<String>,
    /// Whether steps end once the scenario counts: most bugs show in the first hundred writes or not at all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub brief: bool,
    /// So many percent of all requests of managers fail, from the first to the last. With this, zero included, it is
    /// measured how long everything takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<u8>,
    /// Managers side by side; one leads.
    pub managers: u8,
    /// Names of subjects, and what they start with.
    pub subjects: BTreeMap<String, Value>,
    /// In order of time.
    pub steps: Vec<Step>,
}

/// Something that happens.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// When.
    pub at: u64,
    /// What.
    pub what: Action,
}

/// What happens.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub enum Action {
    /// A user edits the objects of a subject.
    Edit(Edit),
    /// Somebody touches a pod.
    Pod(PodAction),
    /// A node is deleted, and created again after so long.
    NodeLost(u64),
    /// A node has no free processor time for so long.
    NodeCrowded(u64),
    /// A fault lasts for so many milliseconds.
    During(u64, LastingFault),
    /// A fault happens at once.
    Once(SuddenFault),
}

/// An edit of a subject's objects. Only the subject can read it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// Name of the subject.
    pub subject: String,
    /// What the user changes.
    pub change: Value,
}

/// What somebody does to the pod at a place in the order of names.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum PodAction {
    /// Deletes it.
    Delete(u8),
    /// Evicts it by the subresource.
    Evict(u8),
    /// Its container crashes once.
    Crash(u8),
    /// Its readiness fails for so many milliseconds.
    Unready(u8, u64),
    /// The node fails it: phase Failed.
    Fail(u8),
    /// A user gives it a label and an annotation of their own.
    Annotate(u8),
    /// A user takes it out of the selector.
    Relabel(u8),
    /// For so many milliseconds, a program that writes whole pods leaves out the annotations of updates in place
    /// whose grace period runs.
    Strip(u64),
}

/// A fault that lasts for a while.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum LastingFault {
    /// Watches of the resource with this plural are late by so many milliseconds.
    Stale(String, u64),
    /// So many percent of the writes are done, but their replies are lost.
    LostReplies(u8, Loss),
    /// So many percent of the requests do not arrive.
    LostRequests(u8, Loss),
    /// So many percent of the requests are refused with this code.
    Refused(u8, u16),
    /// Answers take so many milliseconds longer, at most.
    Slow(u64),
    /// The leader's lease requests are lost, and all others arrive when the fault is over.
    Isolated,
    /// No webhook answers.
    WebhookDown,
    /// Webhooks answer so many milliseconds later, at most.
    WebhookSlow(u64),
}

/// How a loss shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Loss {
    /// The connection breaks.
    Broken,
    /// Nothing ever arrives.
    Silent,
}

/// A fault that happens at once.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum SuddenFault {
    /// The leading manager dies.
    Crash,
    /// The leading manager dies right after so many more writes, before it receives the answer.
    CrashAfterWrites(u32),
    /// The leading manager is stopped, and another one starts.
    Restart,
    /// All watches of the resource with this plural are cut.
    CutWatches(String),
    /// The API server forgets old versions and all watches are cut, so that none can resume.
    Compact,
}

/// As case files hold it.
pub fn stored(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

impl PodAction {
    /// Its name in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Delete(_) => "pod deleted",
            Self::Evict(_) => "pod evicted",
            Self::Crash(_) => "pod crashed",
            Self::Unready(..) => "pod unready",
            Self::Fail(_) => "pod failed",
            Self::Annotate(_) => "pod annotated",
            Self::Relabel(_) => "pod relabelled",
            Self::Strip(_) => "pods stripped",
        }
    }
}

impl Scenario {
    /// A scenario in which nothing fails, with one manager: names of subjects with what they start with, and what
    /// happens, in milliseconds.
    pub fn clean<const N: usize>(
        subjects: [(&str, Value); N],
        steps: impl IntoIterator<Item = (u64, Action)>,
    ) -> Self {
        Self {
            seed: 1,
            bug: None,
            failing: None,
            brief: false,
            managers: 1,
            subjects: subjects.map(|(name, start)| (name.to_owned(), start)).into(),
            steps: steps.into_iter().map(|(at, what)| Step { at, what }).collect(),
        }
    }

    /// A clean scenario of one subject: what it starts with, and its edits.
    pub fn of_edits<E: Serialize>(
        subject: &str,
        start: &impl Serialize,
        edits: impl IntoIterator<Item = (u64, E)>,
    ) -> Self {
        let steps = edits
            .into_iter()
            .map(|(at, edit)| (at, Action::edit(subject, &edit)));
        Self::clean([(subject, stored(start))], steps)
    }

    /// Something happens.
    pub fn push(&mut self, at: u64, what: Action) {
        self.steps.push(Step { at, what });
    }

    /// A user edits the objects of a subject.
    pub fn edit(&mut self, at: u64, subject: &str, edit: &impl Serialize) {
        self.push(at, Action::edit(subject, edit));
    }

    /// When the last step happens; not before `least`.
    pub fn end(&self, least: u64) -> u64 {
        self.steps.iter().map(|step| step.at).fold(least, u64::max)
    }

    /// Adds a subject, and what it starts with.
    pub fn add(&mut self, subject: &str, start: &impl Serialize) {
        self.subjects.insert(subject.to_owned(), stored(start));
    }

    /// What a subject starts with.
    pub fn start<S: DeserializeOwned>(&self, subject: &str) -> anyhow::Result<S> {
        let start = self.subjects.get(subject).unwrap_or(&Value::Null);
        S::deserialize(start).with_context(|| format!("cannot read the start of {subject}"))
    }
}

impl Step {
    /// When it is over.
    pub fn ends_at(&self) -> u64 {
        match &self.what {
            Action::During(lasts, _)
            | Action::NodeLost(lasts)
            | Action::NodeCrowded(lasts)
            | Action::Pod(PodAction::Unready(_, lasts) | PodAction::Strip(lasts)) => self.at + lasts,
            Action::Edit(_) | Action::Pod(_) | Action::Once(_) => self.at,
        }
    }
}

impl Action {
    /// A user's edit of a subject.
    pub fn edit(subject: &str, change: &impl Serialize) -> Self {
        Self::Edit(Edit {
            subject: subject.to_owned(),
            change: stored(change),
        })
    }

    /// Is it an edit of this subject of which that is true?
    pub fn says<E: DeserializeOwned>(&self, subject: &str, said: impl Fn(&E) -> bool) -> bool {
        self.edit_of(subject).is_some_and(|edit| said(&edit))
    }

    /// The edit, if it is one of this subject and can be read.
    pub fn edit_of<E: DeserializeOwned>(&self, subject: &str) -> Option<E> {
        match self {
            Self::Edit(edit) if edit.subject == subject => E::deserialize(&edit.change).ok(),
            _ => None,
        }
    }
}
