//! The input of a plan of an EphemeralJob: its pods, read from the cache or given.

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::ephemeraljob::EphemeralJob;
use kruise_plan_kit::{Explain, Memory, Plan};
use kruise_plan_workloads::ephemeraljob::{Snapshot, plan};
use kruise_views::PodView;

/// The pods of one EphemeralJob.
pub struct Inputs {
    pods: Vec<Arc<PodView>>,
}

impl Inputs {
    /// From the pods of its namespace. It keeps those that the job selects.
    pub fn new(job: &EphemeralJob, mut pods: Vec<Arc<PodView>>) -> Self {
        let selector = &job.spec.selector;
        pods.retain(|pod| selector.matches_by(|key| pod.labels.get(key)));
        Self { pods }
    }

    /// The pods that the job selects.
    pub fn pods(&self) -> &[Arc<PodView>] {
        &self.pods
    }

    /// Plans the EphemeralJob.
    pub fn plan(
        &self,
        job: &EphemeralJob,
        api_version: &str,
        memory: &Memory,
        explain: Explain,
        now: Timestamp,
    ) -> Plan {
        let snapshot = Snapshot {
            job,
            api_version,
            pods: &self.pods,
            memory,
            explain,
        };
        plan(&snapshot, now)
    }
}
