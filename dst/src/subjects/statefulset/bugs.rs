//! Bugs that scenarios of this subject show, each with the seed of its first one and the oracles that may find it
//! first.

use crate::engine::bug::{Bug, bug};

/// The bugs.
pub const BUGS: &[Bug] = &[
    // A StatefulSet gives reserved ordinals away.
    bug(
        "ReservedOrdinalGiven",
        3,
        &[
            "one pod for each slot",
            "claims of slots",
            "revisions of new pods",
            "one after the other",
        ],
    ),
    // The pods of an ordered StatefulSet change together.
    bug("OrderIgnored", 1, &["one after the other"]),
    // A claim of a StatefulSet goes with its pod, though the ordinal is wanted.
    bug("ClaimOfSlotGiven", 1, &["claims are owned as their policy says"]),
    // Claims are to grow whether their class allows it or not.
    bug("ResizeUnchecked", 1, &["claims grow where their class allows it"]),
    // A StatefulSet creates all missing pods at once, however few it may.
    bug("ScaleBudgetIgnored", 8, &["budget of scaling"]),
];
