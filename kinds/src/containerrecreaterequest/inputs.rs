//! The input of a plan of a ContainerRecreateRequest: its pod, read from the cache or given.

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::containerrecreaterequest::ContainerRecreateRequest;
use kruise_plan_kit::{Explain, Memory, Plan};
use kruise_plan_nodes::containerrecreaterequest::{Snapshot, plan};
use kruise_views::PodView;

/// The pod of one ContainerRecreateRequest.
pub struct Inputs {
    pod: Option<Arc<PodView>>,
    others: Vec<String>,
}

impl Inputs {
    /// From the pod of the name that the request has, and the names of other requests for it, for explanations.
    pub fn new(pod: Option<Arc<PodView>>, others: Vec<String>) -> Self {
        Self { pod, others }
    }

    /// Plans the request.
    pub fn plan(
        &self,
        request: &ContainerRecreateRequest,
        memory: &Memory,
        explain: Explain,
        now: Timestamp,
    ) -> Plan {
        let snapshot = Snapshot {
            request,
            pod: self.pod.as_deref(),
            others: &self.others,
            memory,
            explain,
        };
        plan(&snapshot, now)
    }
}
