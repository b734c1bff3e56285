//! Bugs that scenarios of this subject show, each with the seed of its first one and the oracles that may find it
//! first.

use crate::engine::bug::{Bug, bug};

/// The bugs.
pub const BUGS: &[Bug] = &[
    // A PersistentPodState records the node of a pod that is not Ready.
    bug(
        "UnreadyPodRecorded",
        1,
        &["only pods that are Ready are recorded"],
    ),
    // A PersistentPodState forgets a pod that was scaled in and still runs.
    bug(
        "RunningPodForgotten",
        2,
        &["records stay while their pods are wanted or run"],
    ),
    // A new pod gets the labels that are required of its node, and not those that are preferred.
    bug(
        "PreferenceDropped",
        1,
        &["new pods come back to where the last one of their name was"],
    ),
    // A PersistentPodState that a user created is overwritten as the annotations of the workload of its name say.
    // OpenKruise does that.
    bug("ForeignStateTaken", 1, &["what somebody else made stays"]),
];
