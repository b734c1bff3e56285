//! How the pods of a WorkloadSpread are counted: what the webhook and the controller have in common.
//!
//! The state is the stored status, nothing else. For each version of the pods it has, for each subset, how many
//! pods are still missing. Everybody who lets a pod in or out changes the number first:
//! 1. [`assign`] puts a new pod into a subset: the first one that misses pods. The pod becomes an entry of
//!    `creatingPods`.
//! 2. [`delete`] records that a pod goes: an entry of `deletingPods`, and one more pod is missing, unless the
//!    subset has too many.
//! 3. [`status_patch`] is what has changed. It is written under the version of the WorkloadSpread that was asked.
//!    So the API server puts all counts in one order. Who loses asks again, on the WorkloadSpread as it is then.
//!
//! # Entries
//! An entry records a change that the controller has not observed yet: a slot is taken as long as its pod is in
//! `creatingPods`, and what a pod in `deletingPods` frees is free in advance. The controller counts pods and drops
//! the entries of those that it has seen. It drops the others after [`CREATING`] and [`DELETING`]: their requests
//! failed after all.
//!
//! Nothing is counted where no count can be wrong: a single subset without a limit takes every pod, and the
//! ordinals of a StatefulSet say where its pods belong ([`is_counted`]).

mod count;
mod kinds;
mod replicas;
#[cfg(test)]
mod tests;

use std::time::Duration;

use go_compat::{IntOrString, Rounding};
use kruise_api::{
    names::workloadspread::MATCHED,
    workloadspread::{Matched, WorkloadSpread, WorkloadSpreadSpec},
};
use kruise_views::Labels;

pub use count::{
    Choice, GoingPod, NewPod, assign, by_ordinal, delete, initial, is_schedulable, status_patch,
};
pub use kinds::{ListedKind, is_known, listed};
pub use replicas::replicas;

/// The version of all pods whose workload has none.
pub const IGNORED: &str = "versionIgnored";

/// `missingReplicas` of a subset without a limit.
pub const UNLIMITED: i32 = -1;

/// How long the creation of a pod is expected to be seen.
pub const CREATING: Duration = Duration::from_secs(30);
/// How long the deletion of a pod is expected to be seen.
pub const DELETING: Duration = Duration::from_secs(15);

const TEMPLATE_HASH: &str = "pod-template-hash";
const REVISION_HASH: &str = "controller-revision-hash";

/// The version of a pod or workload with these labels, under which it is counted. Pods of Deployments and
/// ReplicaSets have one each; pods of other kinds share [`IGNORED`]. `controller_kind` is the kind of the pod's
/// controller, or of the workload itself.
pub fn version(labels: &Labels, controller_kind: &str) -> String {
    let has_versions = ["Deployment", "ReplicaSet"]
        .iter()
        .any(|kind| kind.eq_ignore_ascii_case(controller_kind));
    let label = |key| labels.get(key).filter(|value| !value.is_empty());
    let revision = || Some(label(REVISION_HASH)?.rsplit('-').next().unwrap_or_default());
    let found = label(TEMPLATE_HASH).or_else(revision);
    let found = found.filter(|found| has_versions && !found.is_empty());
    found.unwrap_or(IGNORED).to_owned()
}

/// How many pods each subset may have at most, in the order of the specification; `None` without a limit. A
/// percentage is of `replicas`, rounded up; of an unknown number it is 0.
///
/// # Errors
/// In plain words, if a limit is neither a number nor a percentage.
pub fn limits(spec: &WorkloadSpreadSpec, replicas: Option<i32>) -> Result<Vec<Option<i32>>, String> {
    let limits = spec.subsets.iter().map(|subset| {
        let limit = subset.max_replicas.as_ref().map(|max| limit(max, replicas));
        let limit = limit.transpose();
        limit.map_err(|error| format!("maxReplicas of subset {}: {error}", subset.name))
    });
    limits.collect()
}

/// A limit as a number.
///
/// # Errors
/// As [`limits`].
fn limit(max: &IntOrString, replicas: Option<i32>) -> Result<i32, String> {
    let total = replicas.unwrap_or(0).max(0);
    let limit = max.scaled_a(total, Rounding::Up);
    limit.map(|limit| limit.max(0)).map_err(|error| error.to_string())
}

/// Is a limit a percentage, so that [`limits`] depend on the number of replicas?
pub fn has_percentages(spec: &WorkloadSpreadSpec) -> bool {
    let mut limits = spec.subsets.iter().map(|subset| &subset.max_replicas);
    limits.any(|limit| matches!(limit, Some(IntOrString::String(_))))
}

/// May all of these replicas be in subsets? Then a subset should have room for a new pod, whatever its number says.
/// An unknown number is taken to fit.
pub fn fits_all(spec: &WorkloadSpreadSpec, replicas: Option<i32>) -> bool {
    let Ok(limits) = limits(spec, replicas) else {
        return false;
    };
    let sum = limits
        .iter()
        .try_fold(0_i64, |sum, limit| Some(sum + i64::from((*limit)?)));
    match (sum, replicas) {
        (Some(sum), Some(replicas)) => sum >= i64::from(replicas),
        (None, _) | (_, None) => true,
    }
}

/// Are the pods of the target counted in the status?
pub fn is_counted(spec: &WorkloadSpreadSpec) -> bool {
    let is_whole = matches!(&spec.subsets[..], [only] if only.max_replicas.is_none());
    !is_whole && !has_ordinals(spec)
}

/// Are the subsets of the pods given by their ordinals, as those of a StatefulSet?
pub fn has_ordinals(spec: &WorkloadSpreadSpec) -> bool {
    spec.target_ref
        .as_ref()
        .is_some_and(|target| target.kind == "StatefulSet")
}

/// The subset that a pod is in, as its annotation says.
pub fn matched(annotations: &Labels) -> Option<Matched> {
    Matched::parse(annotations.get(MATCHED)?)
}

/// Does the target filter take pods with these labels? A filter without a selector takes all.
pub fn selects(spec: &WorkloadSpreadSpec, labels: &Labels) -> bool {
    let filter = spec.target_filter.as_ref();
    let selector = filter.and_then(|filter| filter.selector.as_ref());
    selector.is_none_or(|selector| selector.matches_by(|key| labels.get(key)))
}

/// The subset's index in the specification.
fn index(spread: &WorkloadSpread, subset: &str) -> Option<usize> {
    let mut subsets = spread.spec.subsets.iter();
    subsets.position(|one| one.name == subset)
}
