//! Bugs that scenarios of this subject show, each with the seed of its first one and the oracles that may find it
//! first.

use crate::engine::bug::{Bug, bug};

/// The bugs.
pub const BUGS: &[Bug] = &[
    // A SidecarSet takes one pod more out of service than it may.
    bug("SetUnavailableOffByOne", 3, &["availability of a set"]),
    // A SidecarSet keeps no pods as they are.
    bug("SetPartitionIgnored", 2, &["partition of a set"]),
    // A hot upgrade gives the old container the empty image before the new one is ready.
    bug("HotBeforeReady", 3, &["one twin serves"]),
    // Writes of a SidecarSet are for any version of a pod.
    bug("SetVersionDropped", 1, &["writes of a set are for a version"]),
    // A SidecarSet upgrades while it is paused.
    bug("SetPausedIgnored", 20, &["upgrades are held"]),
    // A SidecarSet upgrades pods that its selector does not name.
    bug("SetSelectorIgnored", 6, &["only selected pods"]),
    // A SidecarSet upgrades pods of which more than images differ.
    bug("OtherChangesUpgraded", 8, &["only images change"]),
];
