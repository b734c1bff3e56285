//! Bugs that scenarios of this subject show, each with the seed of its first one and the oracles that may find it
//! first.

use crate::engine::bug::{Bug, bug};

/// The bugs.
pub const BUGS: &[Bug] = &[
    // A UnitedDeployment takes workloads that somebody else controls for its own.
    bug("OthersTaken", 2, &["workloads of others stay", "convergence"]),
    // A subset of a UnitedDeployment gets one pod less than its share.
    bug("ShareLost", 2, &["subsets get their share"]),
    // A workload of a UnitedDeployment gets the name of a new revision, and keeps the template of the one before.
    bug(
        "TemplateOfBefore",
        1,
        &["workloads have the template of their revision"],
    ),
    // A UnitedDeployment writes the time of each plan into its conditions.
    bug("StatusRestless", 1, &["quiet"]),
    // A UnitedDeployment counts pods of all revisions as updated.
    bug("UpdatedMiscounted", 2, &["convergence"]),
    // No pod of a subset stays at an older revision, whatever the partitions of its UnitedDeployment say.
    bug(
        "SubsetPartitionIgnored",
        2,
        &["subsets have their partition", "convergence"],
    ),
    // Replicas of subsets that contradict those of their UnitedDeployment leave no pod at all.
    bug("ContradictionIgnored", 1, &["contradictions change nothing"]),
    // A UnitedDeployment creates another workload for a subset whose workload has no pods.
    bug("SubsetTwice", 4, &["one workload for each subset", "convergence"]),
    // A UnitedDeployment deletes workloads that are to have no pods.
    bug("EmptySubsetDeleted", 1, &["workloads go with their subsets"]),
    // A UnitedDeployment deletes old revisions that its workloads and their pods are of.
    bug("UsedRevisionDeleted", 1, &["revisions that are used stay"]),
];
