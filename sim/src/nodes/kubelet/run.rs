//! One run of a container's process: what it began with, and how it ended.

use jiff::Timestamp;

use super::Timings;
use super::command::Ending;
use super::spec::ContainerSpec;
use crate::nodes::time::later;

/// The run of a process.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Run {
    pub(super) image: String,
    pub(super) since: Timestamp,
    /// When the startup probe passes.
    pub(super) started: Timestamp,
    /// When the readiness probe passes.
    pub(super) ready: Timestamp,
    /// What it read of the pod's labels and annotations.
    pub(super) environment: Vec<(String, String)>,
    /// What the node records of its specification.
    pub(super) plain_hash: u64,
    /// Until when the node reports that it has started and is ready, because the one before it was.
    pub(super) inherits: Option<Timestamp>,
    /// How it ends by itself.
    pub(super) ends: Option<Ending>,
    /// All of its environment, in order.
    pub(super) variables: Vec<(String, String)>,
}

impl Run {
    /// A process that begins as the specification says now.
    pub(super) fn of(spec: &ContainerSpec<'_>, image: &str, since: Timestamp) -> Self {
        let started = later(since, spec.startup_delay);
        Self {
            image: image.to_owned(),
            since,
            started,
            ready: later(since, spec.readiness_delay).max(started),
            environment: spec.environment.clone(),
            plain_hash: spec.version.plain_hash(spec),
            inherits: None,
            ends: spec.ends,
            variables: spec.variables.clone(),
        }
    }

    /// When it ends by itself, and with which code.
    pub(super) fn end(&self, timings: &Timings) -> Option<(Timestamp, i64)> {
        let ending = self.ends?;
        let after = ending.after.unwrap_or(timings.init_run);
        Some((later(self.since, after), ending.code))
    }

    /// Whether it is reported to be as far as the one before it was.
    pub(super) fn inherits(&self, now: Timestamp) -> bool {
        self.inherits.is_some_and(|until| now < until)
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Exit {
    pub(super) image: String,
    /// What the node recorded of its specification.
    pub(super) plain_hash: u64,
    pub(super) run: u32,
    pub(super) started: Timestamp,
    pub(super) finished: Timestamp,
    pub(super) code: i64,
    pub(super) reason: String,
}
