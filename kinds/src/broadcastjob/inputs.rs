//! The input of a plan of a BroadcastJob: its objects, read from the caches or given.

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::broadcastjob::BroadcastJob;
use kruise_frame::caches::PODS_BY_OWNER;
use kruise_plan_kit::{Memory, Plan, fit::Placement, ledger};
use kruise_plan_workloads::broadcastjob::{Explain, Options, Placed, Snapshot, placement, plan};
use kruise_views::{NodeView, PodView};

use super::BroadcastJobs;
use crate::{
    budgets::Budgets,
    placing::{Placing, fitted, has_node},
};

/// The objects of one BroadcastJob. Each kind is from one snapshot of its cache.
pub struct Inputs {
    nodes: Vec<Placed>,
    placement: Arc<Placement>,
    pods: Vec<Arc<PodView>>,
    budgets: Budgets,
}

impl Inputs {
    /// From these objects. Of the pods it keeps those that the job controls.
    pub fn new(
        job: &BroadcastJob,
        nodes: Vec<Arc<NodeView>>,
        pods: Vec<Arc<PodView>>,
        budgets: Budgets,
    ) -> Self {
        let placement = placement(job);
        Self {
            nodes: fitted(&placement, nodes),
            placement: Arc::new(placement),
            pods: pods_of(job, pods),
            budgets,
        }
    }

    /// The pods that the job controls.
    pub fn pods(&self) -> &[Arc<PodView>] {
        &self.pods
    }

    /// Is there a node of this name?
    pub fn has_node(&self, name: &str) -> bool {
        has_node(&self.nodes, name)
    }

    /// Plans the BroadcastJob.
    pub fn plan(
        &self,
        job: &BroadcastJob,
        api_version: &str,
        options: Options,
        memory: &Memory,
        explain: Explain,
        now: Timestamp,
    ) -> Plan {
        let snapshot = Snapshot {
            job,
            api_version,
            nodes: &self.nodes,
            placement: &self.placement,
            pods: &self.pods,
            budgets: ledger::Budgets {
                gates: self.budgets.limits,
                all: &self.budgets,
            },
            options,
            memory,
            explain,
        };
        plan(&snapshot, now)
    }
}

/// Of these pods, those of the namespace of the job that it controls. A restored pod may name it in another namespace.
fn pods_of(job: &BroadcastJob, mut pods: Vec<Arc<PodView>>) -> Vec<Arc<PodView>> {
    pods.retain(|pod| {
        let owner = pod.controller.as_deref();
        let is_ours = owner.is_some_and(|owner| *owner.uid == *job.metadata.uid);
        is_ours && *pod.namespace == *job.metadata.namespace
    });
    pods
}

impl BroadcastJobs {
    /// Reads the caches: one snapshot of each.
    pub(super) fn read_inputs(&self, placing: &Placing<BroadcastJob>) -> Inputs {
        let metadata = &placing.object.metadata;
        let pods = self.pods.snapshot().by_index(&PODS_BY_OWNER, &metadata.uid);
        let nodes = self.nodes.snapshot().list("");
        Inputs {
            nodes: self.fits.of(&placing.placement, nodes),
            placement: Arc::clone(&placing.placement),
            pods: pods_of(&placing.object, pods),
            budgets: self.budgets.read(&metadata.namespace),
        }
    }
}
