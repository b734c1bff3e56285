//! The workload: how many pods it wants, and which version of them is the newest.

use std::sync::Arc;

use kruise_api::workloadspread::WorkloadSpreadSpec;
use kruise_plan_kit::spread::{self, IGNORED, ListedKind, version};
use kruise_views::{Labels, WorkloadView};
use serde_json::{Value, json};

/// Label of the pods and ReplicaSets of a Deployment.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// How many pods the workload wants; `None` if it does not say.
///
/// # Errors
/// In plain words, if a path that somebody gives leads to no number.
pub(super) fn replicas(
    spec: &WorkloadSpreadSpec,
    workload: &WorkloadView,
    listed: &[ListedKind],
) -> Result<Option<i32>, String> {
    let usual = workload
        .replicas
        .map(|replicas| json!({"spec": {"replicas": replicas, "parallelism": replicas}}));
    let numbers: &Value = workload
        .numbers
        .as_deref()
        .or(usual.as_ref())
        .unwrap_or(&Value::Null);
    let found = spread::replicas(spec, numbers, listed)?;
    // The scale of a kind that has one may be elsewhere.
    Ok(found.or(workload.replicas))
}

/// The newest version of the pods of the workload; `None` if it is not known: a Deployment has no ReplicaSet of its
/// template yet.
pub(super) fn latest(
    spec: &WorkloadSpreadSpec,
    workload: &WorkloadView,
    replica_sets: &[Arc<WorkloadView>],
) -> Option<String> {
    let target = spec.target_ref.as_ref()?;
    let of = |set: &WorkloadView| {
        let hash: Labels = [(TEMPLATE_HASH, &*set.template_hash)].into_iter().collect();
        version(&hash, "ReplicaSet")
    };
    match target.kind.as_str() {
        "Deployment" => {
            let sets = replica_sets.iter().filter(|set| !set.deleting);
            let current = sets.filter(|set| set.template.is_some() && set.template == workload.template);
            // Of several, Kubernetes takes the oldest.
            let current = current.min_by_key(|set| (set.created, &set.name));
            current.map(|set| of(set))
        }
        "ReplicaSet" => Some(of(workload)),
        _ => Some(IGNORED.to_owned()),
    }
}
