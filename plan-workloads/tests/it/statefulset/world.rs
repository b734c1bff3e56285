//! A model cluster with one StatefulSet, and what its planner decides there.

use std::{
    collections::BTreeMap,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use jiff::Timestamp;
use kruise_api::statefulset::StatefulSet;
use kruise_plan_kit::{Explain, Plan, ledger::Budgets};
use kruise_plan_test_kit::{Cluster, ReadBudgets, decode, text};
use kruise_plan_workloads::statefulset::{Options, Snapshot, plan};
use kruise_views::{ClaimView, ImageJobView, PodView, RevisionView, StorageClassView};
use serde_json::{Value, json};

/// API version that owner references carry.
pub(crate) const API_VERSION: &str = "apps.kruise.io/v1beta1";
pub(crate) const SET_UID: &str = "set-uid";

/// Everything that exists.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) options: Options,
    /// Storage classes, and whether volumes of each can grow.
    pub(crate) classes: BTreeMap<String, bool>,
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

/// The set as the owner of its objects. `controls`: of pods and revisions, not of claims.
pub(crate) fn owner(controls: bool) -> Value {
    let mut owner = json!({"apiVersion": API_VERSION, "kind": "StatefulSet", "name": "web", "uid": SET_UID});
    if controls {
        owner["controller"] = json!(true);
        owner["blockOwnerDeletion"] = json!(true);
    }
    owner
}

/// Uid of the controller of an object.
pub(crate) fn controller(object: &Value) -> Option<&str> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    owner["uid"].as_str()
}

impl World {
    /// A world with a set of this specification and nothing else.
    pub(crate) fn new(spec: Value, now: Timestamp) -> Self {
        let set = json!({
            "apiVersion": API_VERSION, "kind": "StatefulSet",
            "metadata": {"name": "web", "namespace": "shop", "uid": SET_UID, "resourceVersion": "1", "generation": 1,
                         "creationTimestamp": text(now)},
            "spec": spec,
        });
        Self {
            cluster: Cluster::new(kruise_api::statefulset::RESOURCE, set, now),
            options: Options::DEFAULT,
            classes: BTreeMap::new(),
        }
    }

    /// The pods that the set's uid controls, and those without a controller that have such a name.
    pub(crate) fn pod_views(&self) -> Vec<Arc<PodView>> {
        let such_name = |name: &str| {
            let digits = name.strip_prefix("web-");
            digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let given = self.pods.iter().filter(|(name, pod)| match controller(pod) {
            Some(uid) => uid == SET_UID,
            None => such_name(name),
        });
        given.map(|(_, pod)| decode(pod)).collect()
    }

    /// What the planner decides now.
    pub(crate) fn plan(&self, explain: Explain) -> Plan {
        self.plan_of(&self.pod_views(), explain)
    }

    /// As [`Self::plan`], over pods in a given order.
    pub(crate) fn plan_of(&self, pods: &[Arc<PodView>], explain: Explain) -> Plan {
        let set = StatefulSet::from_value(self.set.clone()).unwrap();
        let revisions: Vec<Arc<RevisionView>> = self.revisions.values().map(decode).collect();
        let jobs: Vec<Arc<ImageJobView>> = self.jobs.values().map(decode).collect();
        let budgets = ReadBudgets::of(&self.budgets);
        let class = |name: &str| {
            let expands = self.classes.get(name)?;
            let class = json!({"metadata": {"name": name}, "allowVolumeExpansion": expands});
            Some(decode::<StorageClassView>(&class))
        };
        plan(
            &Snapshot {
                set: &set,
                api_version: API_VERSION,
                pods,
                pod: &|name| self.pods.get(name).map(decode::<PodView>),
                claim: &|name| self.claims.get(name).map(decode::<ClaimView>),
                class: &class,
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

    /// Volumes are found for claims that have none.
    pub(crate) fn bind_claims(&mut self) {
        for claim in self.claims.values_mut() {
            if claim["status"]["phase"].is_null() {
                claim["status"] =
                    json!({"phase": "Bound", "capacity": claim["spec"]["resources"]["requests"]});
            }
        }
    }

    /// Volumes get the size that their claims request.
    pub(crate) fn grow_claims(&mut self) {
        for claim in self.claims.values_mut() {
            claim["status"]["capacity"] = claim["spec"]["resources"]["requests"].clone();
        }
    }

    /// Every node does its work on these pods.
    pub(crate) fn nodes<'n>(&mut self, names: impl Iterator<Item = &'n String>) {
        self.bind_claims();
        for name in names {
            self.terminate(name);
            self.bind(name, "a1");
            self.kubelet(name);
        }
    }
}
