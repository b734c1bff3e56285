//! Bugs that scenarios of this subject show, each with the seed of its first one and the oracles that may find it
//! first.

use crate::engine::bug::{Bug, bug};

/// The bugs.
pub const BUGS: &[Bug] = &[
    // `kruise restart` takes one pod more out of service than the workload allows.
    bug("RestartsOffByOne", 1, &["restarts within the limit"]),
    // `kruise restart` does not count the open requests of an earlier run.
    bug(
        "OpenRequestsIgnored",
        1,
        &[
            "restarts within the limit",
            "a restart waits for open requests of its pod",
        ],
    ),
    // `kruise restart` goes on after a request has failed.
    bug("FailedRestartIgnored", 1, &["a failed restart is the last one"]),
    // `kruise restart` does not wait until a pod whose containers run anew is available again.
    bug("RestartedPodUnawaited", 1, &["restarts within the limit"]),
];
