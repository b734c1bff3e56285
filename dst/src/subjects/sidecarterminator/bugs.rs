//! Bugs that scenarios of this subject show, each with the seed of its first one and the oracles that may find it
//! first.

use crate::engine::bug::{Bug, bug};

/// The bugs.
pub const BUGS: &[Bug] = &[
    // Sidecars are stopped when the first main container of their pod has ended.
    bug(
        "OneMainAwaited",
        1,
        &["nothing is stopped before the main containers have ended"],
    ),
    // A main container that failed and is started again is taken for one that has ended.
    bug(
        "FailureTakenForEnd",
        1,
        &["nothing is stopped before the main containers have ended"],
    ),
    // A pod whose sidecars do not count has succeeded, whatever its main containers ended with.
    bug(
        "PhaseOfPodAssumed",
        1,
        &["the phase is that of the main containers"],
    ),
    // A sidecar is requested to stop while a request for it is at work.
    bug("TerminatedTwice", 1, &["a request that is at work goes on"]),
    // Sidecars whose exit codes do not count are stopped with the others.
    bug(
        "IgnoredWithOthers",
        1,
        &["sidecars whose exit codes count end first"],
    ),
];
