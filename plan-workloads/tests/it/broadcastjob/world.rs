//! A model cluster with nodes and one BroadcastJob, and what its planner decides there.

use std::{
    collections::BTreeMap,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use jiff::Timestamp;
use kruise_api::broadcastjob::BroadcastJob;
use kruise_plan_kit::{Explain, Plan, ledger::Budgets};
use kruise_plan_test_kit::{Cluster, ReadBudgets, decode, placed, text};
use kruise_plan_workloads::broadcastjob::{Options, Snapshot, placement, plan};
use kruise_views::PodView;
use serde_json::{Value, json};

use crate::node_names::NodeNames;

/// API version that owner references carry.
pub(crate) const API_VERSION: &str = "apps.kruise.io/v1beta1";
pub(crate) const JOB_UID: &str = "job-uid";

/// Everything that exists.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) options: Options,
    /// Nodes by name.
    pub(crate) nodes: BTreeMap<String, Value>,
}

impl Deref for World {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut Cluster {
        &mut self.cluster
    }
}

/// The job as the controller of its pods, under an API version.
pub(crate) fn owner(api_version: &str) -> Value {
    json!({"apiVersion": api_version, "kind": "BroadcastJob", "name": "check", "uid": JOB_UID,
           "controller": true, "blockOwnerDeletion": true})
}

/// Names of pods.
pub(crate) const NAMES: NodeNames = NodeNames("check", JOB_UID);

impl World {
    /// A world with a job of this specification and nothing else.
    pub(crate) fn new(spec: Value, now: Timestamp) -> Self {
        let job = json!({
            "apiVersion": API_VERSION, "kind": "BroadcastJob",
            "metadata": {"name": "check", "namespace": "shop", "uid": JOB_UID, "resourceVersion": "1", "generation": 1,
                         "creationTimestamp": text(now)},
            "spec": spec,
        });
        Self {
            cluster: Cluster::new(kruise_api::broadcastjob::RESOURCE, job, now),
            options: Options::DEFAULT,
            nodes: BTreeMap::new(),
        }
    }

    /// What the planner decides now.
    pub(crate) fn plan(&self, explain: Explain) -> Plan {
        let job = BroadcastJob::from_value(self.set.clone()).unwrap();
        let placement = placement(&job);
        let nodes = placed(&self.nodes, &placement);
        let pods: Vec<Arc<PodView>> = self.pods.values().map(decode).collect();
        let budgets = ReadBudgets::of(&self.budgets);
        let snapshot = Snapshot {
            job: &job,
            api_version: API_VERSION,
            nodes: &nodes,
            placement: &placement,
            pods: &pods,
            budgets: Budgets {
                gates: self.gates,
                all: &budgets,
            },
            options: self.options,
            memory: &self.memory,
            explain,
        };
        plan(&snapshot, self.now)
    }

    /// The nodes of these pods do their work; the scheduler binds pods to nodes that exist.
    pub(crate) fn work(&mut self, names: &[String]) {
        self.cluster.work_on(&self.nodes, names);
    }
}
