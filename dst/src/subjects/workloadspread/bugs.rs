//! Bugs that scenarios of this subject show, each with the seed of its first one and the oracles that may find it
//! first.

use crate::engine::bug::{Bug, bug};

/// The bugs.
pub const BUGS: &[Bug] = &[
    // A pod that comes into a subset of a WorkloadSpread is recorded, and not counted.
    bug(
        "SlotUncounted",
        1,
        &["no subset takes more pods than its limit", "convergence"],
    ),
    // A webhook writes its counts over those that another replica has stored meanwhile.
    bug(
        "SlotsOverwritten",
        1,
        &["no subset takes more pods than its limit", "convergence"],
    ),
    // Pods get the annotation of their subset, and not its node selector.
    bug("SubsetTermForgotten", 1, &["pods get what their subset adds"]),
    // The last subset that has room is filled first.
    bug("LastSubsetFirst", 1, &["convergence"]),
    // A pod keeps the deletion cost that it once got.
    bug("CostKept", 1, &["convergence"]),
    // Records of pods that never come are looked at only when something else changes.
    bug("EntriesKept", 1, &["convergence"]),
    // Pods that cannot be read, or that no subset can adopt, are tried again every few seconds, before all others.
    bug("AdoptionPolled", 1, &["cost"]),
];
