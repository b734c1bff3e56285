//! Bugs that scenarios of this subject show, each with the seed of its first one and the oracles that may find it
//! first.

use crate::engine::bug::{Bug, bug};

/// The bugs.
pub const BUGS: &[Bug] = &[
    // A node whose pod of a BroadcastJob has ended gets another one.
    bug("NodeRunTwice", 1, &["one pod of a job for each node"]),
    // A BroadcastJob that has ended creates pods for new nodes.
    bug("EndedJobRuns", 1, &["an ended job runs nothing"]),
    // A BroadcastJob runs one pod more than its parallelism allows.
    bug("ParallelismOffByOne", 4, &["parallelism"]),
    // A BroadcastJob goes on though a failed pod is to pause it.
    bug("FailedPodPausesNothing", 26, &["a failed pod pauses the job"]),
    // A BroadcastJob goes on though a failed pod is to end it.
    bug("FailedPodEndsNothing", 26, &["a failed pod ends the job"]),
    // A BroadcastJob does not count restarts.
    bug(
        "RestartsUncounted",
        26,
        &[
            "a failed pod ends the job",
            "a failed pod pauses the job",
            "convergence",
        ],
    ),
    // A BroadcastJob fails five seconds before its deadline.
    bug("DeadlineEarly", 1, &["no job fails before its deadline"]),
    // A BroadcastJob is deleted five seconds before its time to live is over.
    bug(
        "TimeToLiveCut",
        2,
        &["a job is deleted when its time to live is over"],
    ),
];
