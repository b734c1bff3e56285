//! Bugs that scenarios of this subject show, each with the seed of its first one and the oracles that may find it
//! first.

use crate::engine::bug::{Bug, bug};

/// The bugs.
pub const BUGS: &[Bug] = &[
    // An EphemeralJob adds its containers to one pod more than its parallelism allows.
    bug("PodsAtOnceOffByOne", 1, &["pods at a time"]),
    // An EphemeralJob that has ended goes on with the next pods.
    bug(
        "EndedContainersAdded",
        1,
        &["an ended job adds nothing", "a paused job adds nothing"],
    ),
    // An EphemeralJob of which some pods succeeded and others failed has no end.
    bug(
        "MixedResultsUnended",
        5,
        &["a job whose pods have their results ends"],
    ),
    // An EphemeralJob takes more pods than its replicas.
    bug("ReplicasIgnored", 2, &["pods of a job"]),
];
