//! Pods and WorkloadSpreads, as the documentation explains them.

use super::super::start::{DEPLOYMENT_VERSION, SPREAD, Workload};
use crate::rules::prelude::*;

/// The annotation that names the WorkloadSpread and the subset of a pod.
const MATCHED: &str = "apps.kruise.io/matched-workloadspread";
/// The version of pods whose workload has none.
const IGNORED: &str = "versionIgnored";

/// The subset that a pod is in.
pub fn subset_of(pod: &Object) -> Option<String> {
    let text = pod.annotations()[MATCHED].as_str()?;
    let matched: Value = serde_json::from_str(text).ok()?;
    let subset = matched["subset"].as_str().filter(|_| matched["name"] == SPREAD);
    subset.map(str::to_owned)
}

/// Is it a pod of the workload?
pub fn is_of(pod: &Object, mirror: &Mirror, workload: Workload) -> bool {
    let owners = &mirror.of(workload.controls()).objects;
    !pod.owner().is_empty() && owners.contains_key(pod.owner())
}

/// The version under which a pod is counted.
pub fn version(pod: &Object, workload: Workload) -> &str {
    match workload {
        Workload::CloneSet => IGNORED,
        Workload::Deployment => pod.label(DEPLOYMENT_VERSION),
    }
}

/// Replicas that the workload wants.
pub fn replicas(mirror: &Mirror, workload: Workload) -> i64 {
    let mut all = mirror.of(workload.resource()).now();
    all.next().map_or(0, |workload| wanted(workload))
}

/// Replicas that a version of the workload wants.
pub fn wanted(workload: &Object) -> i64 {
    workload.spec()["replicas"].as_i64().unwrap_or(1)
}

/// How many pods a subset may have, of so many replicas; nothing without a limit.
pub fn limit(subset: &Value, replicas: i64) -> Option<i64> {
    let limit = &subset["maxReplicas"];
    (!limit.is_null()).then(|| rounded_up(limit, replicas, 0))
}

/// Does a limit of a WorkloadSpread depend on the replicas?
pub fn has_percentages(spread: &Object) -> bool {
    let mut subsets = subsets(spread).iter();
    subsets.any(|subset| subset["maxReplicas"].is_string())
}

/// The subsets of a specification.
pub fn subsets(spread: &Object) -> &[Value] {
    list(&spread.spec()["subsets"])
}

/// What the status says of the subsets for a version of the pods.
pub fn statuses<'s>(spread: &'s Object, version: &str) -> &'s [Value] {
    list(&spread.status()["versionedSubsetStatuses"][version])
}

/// Every list of the status that records pods.
pub fn all_statuses(spread: &Object) -> impl Iterator<Item = (&str, &[Value])> {
    let versions = pairs(&spread.status()["versionedSubsetStatuses"]);
    versions.map(|(version, statuses)| (version, list(statuses)))
}

/// Is a subset marked as one that no node can take pods of?
pub fn is_marked(status: &Value) -> bool {
    let mut conditions = items(&status["conditions"]);
    conditions.any(|one| one["type"] == "Schedulable" && one["status"] == "False")
}
