//! On which nodes pods of a DaemonSet may run.

use crate::rules::fit;
use crate::rules::prelude::*;

/// What every pod of a DaemonSet tolerates: key and effect.
pub static TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// May a pod of the template be created on the node?
pub fn runs(template: &Value, node: &Object) -> bool {
    fit::runs(template, node, &TOLERATED)
}

/// May one that is there stay?
pub fn continues(template: &Value, node: &Object) -> bool {
    fit::continues(template, node, &TOLERATED)
}
