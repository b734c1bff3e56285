//! Bugs that scenarios of this subject show, each with the seed of its first one and the oracles that may find it
//! first.

use crate::engine::bug::{Bug, bug};

/// The bugs.
pub const BUGS: &[Bug] = &[
    // Plans are made before their own writes are seen.
    bug(
        "GateOff",
        8,
        &[
            "available when complete",
            "number of pods",
            "availability",
            "partition",
            "preconditions",
            "names are decided once",
            "no updates while they are held",
            "pods go to the update revision",
            "its hook allows its deletion",
            "kept when replicas are short",
            "preferred pods first",
        ],
    ),
    // Deletions do not name the uid.
    bug("UidDropped", 2, &["preconditions"]),
    // Names of pods are drawn.
    bug("RandomNames", 135, &["names are decided once"]),
    // After a start the first list may be an old one.
    bug(
        "StaleListTrusted",
        283,
        &[
            "number of pods",
            "convergence",
            "availability",
            "partition",
            "deletion has a cause",
            "quiet",
            "names are decided once",
            "no updates while they are held",
            "pods go to the update revision",
            "its hook allows its deletion",
            "kept when replicas are short",
            "preferred pods first",
            "images are those of the set",
        ],
    ),
    // The status reports what is planned, not what is there.
    bug("StatusBeforePods", 1, &["status reports what was"]),
    // Pods are put into service before their containers changed.
    bug("ReadyBeforeCompletion", 1, &["available when complete"]),
    // A creation without an answer is repeated under another name.
    bug(
        "LostReplyRetried",
        4,
        &["number of pods", "revisions are stable", "names are decided once"],
    ),
    // One pod more than the partition allows.
    bug("PartitionOffByOne", 2, &["partition"]),
    // Managers run their controllers without the lease.
    bug("TwoLeaders", 1, &["only the leader writes"]),
    // All pods are created at once.
    bug("SlowStartOff", 1, &["slow start"]),
    // The key of a hook stays on a pod that the hook holds no more.
    bug("HookKeyLeft", 2, &["convergence"]),
    // Claims are deleted while their pod lives, if nothing reuses them.
    bug("ClaimOfLivePod", 2, &["claims of live pods stay"]),
    // Images change before the grace period is over.
    bug("GraceIgnored", 2, &["grace first"]),
    // A pod whose update left no record has been updated.
    bug(
        "LostRecordTrusted",
        1,
        &["convergence", "available when complete"],
    ),
    // A pod is labelled as updated before its containers are resized.
    bug("ResizeAfterPodWrite", 7, &["resources first"]),
    // A container is ready because the one before it was.
    bug(
        "ReadinessInherited",
        12,
        &["available when complete", "availability"],
    ),
    // Pods are deleted at once, so that the next one of an ordinal may run beside the one before.
    bug("GraceOfPodsDropped", 2, &["pods end in their own time"]),
];
