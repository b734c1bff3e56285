//! How nodes behave.

use std::time::Duration;

use jiff::SignedDuration;

use super::kubelet::Timings;
use super::runtime;
use super::stage::DEFAULT_STAGES;

/// How nodes behave.
#[derive(Clone, Debug)]
pub struct Options {
    /// A stage file; append to [`DEFAULT_STAGES`] or replace it.
    pub stages: String,
    /// How long things take.
    pub timings: Timings,
    /// Whether OpenKruise's daemon runs on the nodes: it restarts containers whose environment reads labels or
    /// annotations of their pod, when these were changed in place.
    pub daemon: bool,
    /// Whether kubelets and scheduler record events, which takes requests: `Scheduled`, `Pulled`, `Started` and others.
    pub events: bool,
    /// From the deletion of an owner to that of its dependents.
    pub garbage: Duration,
    /// What the container runtimes of nodes have and reach.
    pub runtime: runtime::Options,
    /// How long a node may be gone before its pods are removed; Kubernetes waits 40 s.
    pub patience: SignedDuration,
    /// Kinds of controllers whose pods come to an end.
    pub jobs: &'static [&'static str],
}

impl Default for Options {
    fn default() -> Self {
        Self {
            stages: DEFAULT_STAGES.to_owned(),
            timings: Timings::default(),
            daemon: false,
            events: false,
            garbage: Duration::ZERO,
            runtime: runtime::Options::default(),
            patience: SignedDuration::ZERO,
            jobs: &["Job"],
        }
    }
}
