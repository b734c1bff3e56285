//! Who waits for an answer.

use std::sync::Arc;

use kruise_sim::Request;

use crate::engine::{
    cluster::Cluster,
    process::{ProcessId, Sent, creates_pod_of},
};

/// Somebody waits for an answer; once dropped, nobody does.
pub struct Waiting {
    cluster: Arc<Cluster>,
    process: ProcessId,
    agent: String,
    /// The workload of the pod that is being created, if one is.
    creates: Option<String>,
    sent: Arc<Sent>,
}

impl Waiting {
    /// A component of a process waits.
    pub fn new(
        cluster: &Arc<Cluster>,
        process: ProcessId,
        agent: &str,
        request: &Request,
        sent: &Arc<Sent>,
    ) -> Self {
        Self {
            cluster: cluster.clone(),
            process,
            agent: agent.to_owned(),
            creates: creates_pod_of(request),
            sent: sent.clone(),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.sent.give_up();
        if !self.sent.of_plan {
            return;
        }
        self.cluster.look(|state| {
            if let Some(process) = state.processes.get_mut(&self.process) {
                process.ends(&self.agent, self.creates.as_deref());
            }
        });
    }
}
