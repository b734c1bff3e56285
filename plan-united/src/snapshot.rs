//! What a plan is made from.

use std::sync::Arc;

use kruise_api::uniteddeployment::{Child, UnitedDeployment};
use kruise_plan_kit::{Explain, Memory};
use kruise_views::{PodView, RevisionView, SubsetView};

/// One snapshot of a UnitedDeployment and its objects.
pub struct Snapshot<'a> {
    /// The UnitedDeployment.
    pub united: &'a UnitedDeployment,
    /// `apiVersion` for references to it: that of the version on the wire.
    pub api_version: &'a str,
    /// `apiVersion` in which the workloads of the template's kind are served; `None` if they are not.
    pub child_api_version: Option<&'a str>,
    /// Workloads of all kinds with the label of a subset, in its namespace: those that it controls, and those without a
    /// controller.
    pub workloads: &'a [Workload],
    /// Revisions that it controls, and those without a controller that its selector matches.
    pub revisions: &'a [Arc<RevisionView>],
    /// What the last execution taught.
    pub memory: &'a Memory,
    /// Is `Plan::why` wanted?
    pub explain: Explain,
}

/// A workload and its pods.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Its kind.
    pub child: Child,
    /// The workload.
    pub view: Arc<SubsetView>,
    /// Pods that it controls; those of a Deployment through its ReplicaSets.
    pub pods: Vec<Arc<PodView>>,
}

impl Workload {
    /// `spec.replicas`.
    pub(crate) fn replicas(&self) -> i32 {
        let replicas = self.view.object.pointer("/spec/replicas");
        let replicas = replicas.and_then(serde_json::Value::as_i64);
        replicas.map_or(1, |replicas| i32::try_from(replicas).unwrap_or(i32::MAX))
    }
}
