//! Bugs that scenarios of this subject show, each with the seed of its first one and the oracles that may find it
//! first.

use crate::engine::bug::{Bug, bug};

/// The bugs.
pub const BUGS: &[Bug] = &[
    // The last activation is that of the jobs that there are, as OpenKruise finds it.
    bug(
        "ActivationForgotten",
        1,
        &[
            "one job for each activation",
            "the last activation never moves back",
        ],
    ),
    // An activation is recorded before its job is created.
    bug(
        "RecordedBeforeCreated",
        1,
        &["activations are recorded when they had a job"],
    ),
    // Jobs are deleted before their activation is recorded.
    bug(
        "DeletedUnrecorded",
        2,
        &["activations are recorded before their jobs go"],
    ),
    // A job that is due does not wait for the one that runs.
    bug("ForbidIgnored", 3, &["jobs run as the policy allows"]),
];
