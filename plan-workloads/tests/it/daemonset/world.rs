//! A model cluster with nodes and one DaemonSet, and what its planner decides there.

use std::{
    collections::BTreeMap,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use jiff::Timestamp;
use kruise_api::daemonset::DaemonSet;
use kruise_plan_kit::{Explain, Plan, ledger::Budgets};
use kruise_plan_test_kit::{Cluster, ReadBudgets, decode, placed, text};
use kruise_plan_workloads::daemonset::{Options, Snapshot, placement, plan};
use kruise_views::{ImageJobView, PodView, RevisionView};
use serde_json::{Value, json};

use crate::node_names::NodeNames;

/// API version that owner references carry.
pub(crate) const API_VERSION: &str = "apps.kruise.io/v1beta1";
pub(crate) const SET_UID: &str = "set-uid";

/// Everything that exists.
#[derive(Clone, Debug)]
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

/// The set as the controller of its objects.
pub(crate) fn owner() -> Value {
    json!({"apiVersion": API_VERSION, "kind": "DaemonSet", "name": "agent", "uid": SET_UID,
           "controller": true, "blockOwnerDeletion": true})
}

/// Names of pods.
pub(crate) const NAMES: NodeNames = NodeNames("agent", SET_UID);

fn controller(object: &Value) -> Option<&str> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    owner["uid"].as_str()
}

impl World {
    /// A world with a set of this specification and nothing else.
    pub(crate) fn new(spec: Value, now: Timestamp) -> Self {
        let set = json!({
            "apiVersion": API_VERSION, "kind": "DaemonSet",
            "metadata": {"name": "agent", "namespace": "shop", "uid": SET_UID, "resourceVersion": "1", "generation": 1,
                         "creationTimestamp": text(now)},
            "spec": spec,
        });
        Self {
            cluster: Cluster::new(kruise_api::daemonset::RESOURCE, set, now),
            options: Options::DEFAULT,
            nodes: BTreeMap::new(),
        }
    }

    /// Adds a node, or replaces it.
    pub(crate) fn join(&mut self, name: &str, labels: Value, taints: Value) {
        let node = json!({
            "metadata": {"name": name, "uid": format!("uid-of-{name}"), "resourceVersion": "3", "labels": labels},
            "spec": {"taints": taints},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        self.nodes.insert(name.to_owned(), node);
    }

    /// The pods that the set's uid controls, and those without a controller that its selector matches.
    pub(crate) fn pod_views(&self) -> Vec<Arc<PodView>> {
        let selector = &self.set["spec"]["selector"]["matchLabels"];
        let matches = |pod: &Value| {
            let mut labels = selector.as_object().unwrap().iter();
            labels.all(|(key, value)| pod["metadata"]["labels"][key] == *value)
        };
        let given = self.pods.values().filter(|pod| match controller(pod) {
            Some(uid) => uid == SET_UID,
            None => matches(pod),
        });
        given.map(decode).collect()
    }

    /// What the planner decides now.
    pub(crate) fn plan(&self, explain: Explain) -> Plan {
        self.plan_of(&self.pod_views(), explain)
    }

    /// As [`Self::plan`], over pods in a given order.
    pub(crate) fn plan_of(&self, pods: &[Arc<PodView>], explain: Explain) -> Plan {
        let set = DaemonSet::from_value(self.set.clone()).unwrap();
        let revisions: Vec<Arc<RevisionView>> = self.revisions.values().map(decode).collect();
        let jobs: Vec<Arc<ImageJobView>> = self.jobs.values().map(decode).collect();
        let placement = placement(&set);
        let budgets = ReadBudgets::of(&self.budgets);
        plan(
            &Snapshot {
                set: &set,
                api_version: API_VERSION,
                nodes: &placed(&self.nodes, &placement),
                placement: &placement,
                pods,
                revisions: &revisions,
                pull_jobs: &jobs,
                budgets: Budgets {
                    gates: self.gates,
                    all: &budgets,
                },
                options: self.options,
                memory: &self.memory,
                explain,
            },
            self.now,
        )
    }

    /// The nodes of these pods do their work; the scheduler binds pods to nodes that exist.
    pub(crate) fn work(&mut self, names: &[String]) {
        self.cluster.work_on(&self.nodes, names);
    }
}
