//! Bugs that scenarios of this subject show, each with the seed of its first one and the oracles that may find it
//! first.

use crate::engine::bug::{Bug, bug};

/// The bugs.
pub const BUGS: &[Bug] = &[
    // Copies of a ResourceDistribution that the server refuses are read and written again at once, before all others.
    bug("RefusedCopiesFirst", 1, &["cost"]),
];
