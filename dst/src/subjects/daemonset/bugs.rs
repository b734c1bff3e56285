//! Bugs that scenarios of this subject show, each with the seed of its first one and the oracles that may find it
//! first.

use crate::engine::bug::{Bug, bug};

/// The bugs.
pub const BUGS: &[Bug] = &[
    // A node gets another pod of a DaemonSet while one is being deleted.
    bug("NodePodTwice", 3, &["one pod for each node"]),
    // More nodes have an old and a new pod than a DaemonSet allows.
    bug("SurgeUnbounded", 1, &["surge"]),
    // One node more is updated than the partition of a DaemonSet allows.
    bug("NodePartitionOffByOne", 3, &["partition"]),
    // Nodes with a taint that its pods do not tolerate get pods of a DaemonSet.
    bug(
        "IneligibleNodeGiven",
        5,
        &["nodes that may run a pod", "status fits together"],
    ),
    // A DaemonSet takes the pod of one node more out of service than it may.
    bug("NodesUnavailableOffByOne", 3, &["availability"]),
    // A DaemonSet updates nodes that its selector leaves out.
    bug("NodeSelectorIgnored", 1, &["selector"]),
    // A DaemonSet creates, deletes and updates all pods in one step.
    bug("BurstIgnored", 1, &["burst"]),
    // The name of a DaemonSet's pod does not depend on its node.
    bug("NameForSeveralNodes", 1, &["a name is for one node"]),
    // A DaemonSet recreates what it could update in place.
    bug("InPlaceForgotten", 2, &["in place where possible"]),
    // A pod of a node has the name of the one before it.
    bug("PredecessorsName", 1, &["a successor has a name of its own"]),
    // A DaemonSet creates the first pods of nodes that the partition is to leave without one.
    bug("FirstPodsUnlimited", 3, &["first creations in parts"]),
    // A second pod of a DaemonSet stays on its node.
    bug("SurplusKept", 1, &["convergence"]),
];
