//! Bugs that scenarios of this subject show, each with the seed of its first one and the oracles that may find it
//! first.

use crate::engine::bug::{Bug, bug};

/// The bugs.
pub const BUGS: &[Bug] = &[
    // An ImagePullJob has one node more pull than its parallelism allows.
    bug("NodesAtOnceOffByOne", 1, &["nodes at a time"]),
    // The first ImagePullJob that ends deletes the copy of a secret, although another job needs it.
    bug("NeededCopyDeleted", 2, &["copies stay while jobs need them"]),
    // An ImagePullJob writes the images of a node as they were when it planned.
    bug(
        "PullsOverwritten",
        1,
        &["nothing of others is lost", "an ended job asks no node"],
    ),
    // A tag is removed from a node with the first of the jobs that want it.
    bug("SharedTagRemoved", 1, &["nothing of others is lost"]),
    // A node agent that starts anew pulls what one before it has pulled for the same job.
    bug("EndedPullRepeated", 1, &["what became of a pull is final"]),
    // A node agent takes the end of a pull that failed for the image.
    bug(
        "FailedPullConfirmed",
        1,
        &["an image that does not exist is never pulled"],
    ),
    // A node agent does not count pulls that failed.
    bug("PullFailuresUncounted", 1, &["convergence", "cost"]),
];
