//! Bugs that scenarios of this subject show, each with the seed of its first one and the oracles that may find it
//! first.

use crate::engine::bug::{Bug, bug};

/// The bugs.
pub const BUGS: &[Bug] = &[
    // A PodProbeMarker that is deleted takes the probes of markers with it whose names end in its own.
    bug("OtherProbesRemoved", 1, &["no probe that is wanted is lost"]),
    // Probes of a node are removed from the list as it was when that was planned.
    bug(
        "ProbesOverwritten",
        6,
        &["no probe that is wanted is lost", "tidying adds nothing"],
    ),
];
