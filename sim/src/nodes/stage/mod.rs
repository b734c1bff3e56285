//! Stages: what happens to an object, when, in kwok's format.
//!
//! A stage file holds `kwok.x-k8s.io/v1alpha1` documents of kind `Stage`. Understood are:
//!
//! | member of `spec` | what is understood |
//! |---|---|
//! | `resourceRef` | kinds `Pod` and `Node` of group `v1` |
//! | `selector` | `matchLabels`, `matchAnnotations`, `matchExpressions` with jq and `In`, `NotIn`, `Exists`, `DoesNotExist` |
//! | `weight` | one of several matching stages is drawn by weight; without weights the first in the file is taken |
//! | `delay` | `durationMilliseconds`, `jitterDurationMilliseconds` (the longest delay) |
//! | `next.statusTemplate`, `next.patches` | static YAML, with the templates of [`template`] |
//! | `next.finalizers` | `add`, `remove`, `empty` |
//! | `next.delete`, `next.event` | as in kwok |
//! | `next.step` | ours: work that a template cannot describe, done in code; see [`Step`] |
//!
//! Everything else is refused when the file is read: a stage is never carried out in part.

mod document;
pub(crate) mod jq;
mod selector;
pub(super) mod template;

use std::time::Duration;

use self::document::Document;
pub(super) use self::jq::Input;
pub(super) use self::selector::Selector;
use self::template::Template;

/// The stages of pods and nodes by default.
pub const DEFAULT_STAGES: &str = include_str!("default.yaml");

/// A stage file that is not understood.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum StageError {
    /// It is not YAML, or has members that are not supported.
    #[error("stages: {0}")]
    Format(String),
    /// A stage uses what is not supported.
    #[error("stage {stage}: {why}")]
    Unsupported {
        /// The stage's name.
        stage: String,
        /// What, and what is supported instead.
        why: String,
    },
}

/// The kind of object that a stage is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Node,
    Pod,
}

/// A stage that was understood.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) selector: Selector,
    pub(super) weight: u64,
    pub(super) delay: Duration,
    /// The longest delay, if it varies.
    pub(super) jitter: Option<Duration>,
    pub(super) next: Next,
}

/// What a stage does, in this order.
#[derive(Clone, Debug, Default)]
pub(super) struct Next {
    pub(super) event: Option<Event>,
    pub(super) finalizers: Option<Finalizers>,
    pub(super) delete: bool,
    pub(super) patches: Vec<Patch>,
    pub(super) step: Option<Step>,
}

#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) kind: String,
    pub(super) reason: String,
    pub(super) message: String,
}

#[derive(Clone, Debug)]
pub(super) struct Finalizers {
    pub(super) add: Vec<String>,
    pub(super) remove: Vec<String>,
    pub(super) empty: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Patch {
    /// `status` or empty.
    pub(super) subresource: String,
    /// The member that the template is the value of; empty for the object itself.
    pub(super) root: String,
    pub(super) media_type: &'static str,
    pub(super) template: Template,
}

/// Work done in code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A node reports its addresses, resources and conditions, and loses the taint of nodes that are not ready.
    Initialize,
    /// A node's agent brings the pod's containers towards its spec and reports their state.
    Sync,
    /// A node's agent stops the pod's containers, then lets the pod go.
    Terminate,
    /// A node's agent stops what still runs of a pod that somebody else has ended.
    TearDown,
    /// A running container ends.
    Crash {
        container: String,
        exit_code: i64,
        reason: String,
    },
    /// The answers of a container's readiness probe change.
    Readiness { container: String, passes: bool },
}

impl Step {
    /// Whether the step continues for as long as its stage matches, and runs at every change.
    pub(super) fn is_continuous(&self) -> bool {
        matches!(self, Self::Sync | Self::Terminate | Self::TearDown)
    }
}

impl Stage {
    /// Reads a file of stages.
    pub(super) fn read(text: &str) -> Result<Vec<Self>, StageError> {
        let documents: Vec<Document> =
            serde_saphyr::from_multiple(text).map_err(|error| StageError::Format(error.to_string()))?;
        documents.into_iter().map(Document::stage).collect()
    }

    pub(super) fn is_continuous(&self) -> bool {
        self.next.step.as_ref().is_some_and(Step::is_continuous)
    }

    /// Whether its step is the agent's: to bring containers towards the pod's spec.
    pub(super) fn is_sync(&self) -> bool {
        self.next.step == Some(Step::Sync)
    }

    pub(super) fn matches(&self, kind: Kind, input: &Input<'_>) -> bool {
        self.kind == kind && self.selector.matches(input)
    }

    /// The delay for a draw out of all `u64`s.
    pub(super) fn delay(&self, draw: impl FnOnce() -> u64) -> Duration {
        let spread = self
            .jitter
            .map_or(0, |longest| longest.saturating_sub(self.delay).as_millis() as u64);
        if spread == 0 {
            return self.delay;
        }
        self.delay + Duration::from_millis(draw() % spread)
    }
}

#[cfg(test)]
mod tests;
