//! A model cluster with one CloneSet, and what its planner decides there.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::{Deref, DerefMut},
    sync::{Arc, LazyLock},
};

use jiff::Timestamp;
use kruise_api::cloneset::CloneSet;
use kruise_plan_kit::{Intent, Plan, Write, ledger::Budgets};
use kruise_plan_test_kit::{Cluster, ReadBudgets, Refused, text};
use kruise_plan_workloads::cloneset::{Claims, Explain, Options, Snapshot, plan};
use kruise_views::{ClaimView, ImageJobView, NodeView, PodView, RevisionView};
use serde_json::{Value, json};

pub(crate) use kruise_plan_test_kit::{mounts, uid_of};

/// API version that owner references carry.
pub(crate) const API_VERSION: &str = "apps.kruise.io/v1beta1";
const SET_UID: &str = "set-uid";

/// Three nodes in each of two zones; the letter is the zone.
pub(crate) const NODE_NAMES: [&str; 6] = ["a1", "a2", "a3", "b1", "b2", "b3"];

static NODES: LazyLock<BTreeMap<String, NodeView>> = LazyLock::new(|| {
    let node = |name: &&str| {
        let labels = json!({"zone": name[..1], "kubernetes.io/hostname": name});
        let node = json!({"metadata": {"name": name, "labels": labels}});
        ((*name).to_owned(), serde_json::from_value(node).unwrap())
    };
    NODE_NAMES.iter().map(node).collect()
});

/// Everything that exists, and what the oracle must remember of it.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    /// Claims by uid that some pod has mounted.
    pub(crate) mounted: BTreeSet<String>,
    /// Pods by uid whose containers were told to have other resources, and that do not say so yet.
    pub(crate) resized: BTreeSet<String>,
    /// Version of the set at which each claim was made, by its uid.
    pub(crate) made_at: BTreeMap<String, Value>,
    pub(crate) options: Options,
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

impl World {
    /// A world with a set of this specification and nothing else.
    pub(crate) fn new(spec: Value, now: Timestamp) -> Self {
        let set = json!({
            "apiVersion": API_VERSION, "kind": "CloneSet",
            "metadata": {"name": "web", "namespace": "shop", "uid": SET_UID, "resourceVersion": "1", "generation": 1,
                         "creationTimestamp": text(now)},
            "spec": spec,
        });
        Self {
            cluster: Cluster::new(kruise_api::cloneset::RESOURCE, set, now),
            mounted: BTreeSet::new(),
            resized: BTreeSet::new(),
            made_at: BTreeMap::new(),
            options: Options::DEFAULT,
        }
    }

    /// The set as the planner reads it.
    pub(crate) fn decoded_set(&self) -> CloneSet {
        serde_json::from_value(self.set.clone()).unwrap()
    }

    /// The pods that the set's uid controls, as the index by owner finds them.
    pub(crate) fn pod_views(&self) -> Vec<Arc<PodView>> {
        let views = self
            .pods
            .values()
            .map(|pod| serde_json::from_value::<PodView>(pod.clone()).unwrap());
        let ours = views.filter(|pod| {
            pod.controller
                .as_ref()
                .is_some_and(|owner| &*owner.uid == SET_UID)
        });
        ours.map(Arc::new).collect()
    }

    /// The claims that the set's uid controls, and which of their pods there are.
    fn claims_of(&self, set: &CloneSet) -> Claims {
        let views = self
            .claims
            .values()
            .map(|claim| serde_json::from_value::<ClaimView>(claim.clone()).unwrap());
        let ours = views.filter(|claim| {
            claim
                .controller
                .as_ref()
                .is_some_and(|owner| &*owner.uid == SET_UID)
        });
        Claims::new(set, ours.map(Arc::new).collect(), |pod| {
            self.pods.contains_key(pod)
        })
    }

    /// The revisions as the planner reads them.
    pub(crate) fn revision_views(&self) -> Vec<Arc<RevisionView>> {
        let decode = |revision: &Value| serde_json::from_str::<RevisionView>(&revision.to_string()).unwrap();
        self.revisions.values().map(decode).map(Arc::new).collect()
    }

    /// The jobs that pull images, as the planner reads them.
    fn job_views(&self) -> Vec<Arc<ImageJobView>> {
        let decode = |job: &Value| serde_json::from_value::<ImageJobView>(job.clone()).unwrap();
        self.jobs.values().map(decode).map(Arc::new).collect()
    }

    /// What the planner decides now.
    pub(crate) fn plan(&self) -> Plan {
        self.plan_of(&self.pod_views(), Explain::No)
    }

    /// As [`Self::plan`], over pods in a given order.
    pub(crate) fn plan_of(&self, pods: &[Arc<PodView>], explain: Explain) -> Plan {
        let set = self.decoded_set();
        let budgets = ReadBudgets::of(&self.budgets);
        plan(
            &Snapshot {
                set: &set,
                api_version: API_VERSION,
                pods,
                claims: &self.claims_of(&set),
                revisions: &self.revision_views(),
                pull_jobs: &self.job_views(),
                node: &|name| NODES.get(name),
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

    /// As [`Cluster::apply`]; remembers what claims were made for.
    pub(crate) fn apply(&mut self, write: &Write, previous: &mut Option<String>) -> Result<(), Refused> {
        let of_set = self.set["metadata"]["resourceVersion"].clone();
        self.cluster.apply(write, previous)?;
        let name = &write.target().name;
        match write.intent() {
            Intent::CREATE_POD => {
                let names = mounts(&self.pods[name]);
                let claims = names.iter().filter_map(|name| self.cluster.claims.get(name));
                self.mounted.extend(claims.map(uid_of));
            }
            Intent::CREATE_CLAIM => {
                let uid = uid_of(&self.claims[name]);
                self.made_at.insert(uid, of_set);
            }
            _ => {}
        }
        Ok(())
    }
}
