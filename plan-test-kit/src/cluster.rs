//! A model cluster: one workload, and its pods, claims, revisions and jobs as a server stores them.
//!
//! Objects are JSON and go back to the planner through the same decoding as in production, so a patch that production
//! would misread is misread here.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};
use kruise_plan_kit::{Memory, Plan, Precondition, ResourceId, Write, ledger::Gates};
use serde_json::{Value, json};

use crate::{Refused, create, may_delete, merge, patch, text};

/// Everything that exists, each kind by name. All of it is in one namespace.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The workload.
    pub set: Value,
    /// Pods, whosever they are.
    pub pods: BTreeMap<String, Value>,
    /// Claims, whosever they are.
    pub claims: BTreeMap<String, Value>,
    /// Controller revisions.
    pub revisions: BTreeMap<String, Value>,
    /// Jobs that pull images.
    pub jobs: BTreeMap<String, Value>,
    /// PodUnavailableBudgets.
    pub budgets: BTreeMap<String, Value>,
    /// What budgets limit.
    pub gates: Gates,
    /// The time.
    pub now: Timestamp,
    /// An image whose containers never become ready.
    pub broken_image: Option<String>,
    /// Does the garbage collector come only when it is called?
    pub lazy: bool,
    /// What executing plans taught.
    pub memory: Memory,
    /// Resource of the workload.
    resource: ResourceId,
    version: u64,
    serial: u64,
}

impl Cluster {
    /// A cluster with a workload and nothing else. Its `resourceVersion` is 1.
    pub fn new(resource: ResourceId, set: Value, now: Timestamp) -> Self {
        Self {
            set,
            pods: BTreeMap::new(),
            claims: BTreeMap::new(),
            revisions: BTreeMap::new(),
            jobs: BTreeMap::new(),
            budgets: BTreeMap::new(),
            gates: Gates::DEFAULT,
            now,
            broken_image: None,
            lazy: false,
            memory: Memory::default(),
            resource,
            version: 1,
            serial: 0,
        }
    }

    /// Lets the clock run.
    pub fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// Edits the specification as a user would: a new generation.
    pub fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        let before = self.set["spec"].clone();
        change(&mut self.set["spec"]);
        if before != self.set["spec"] {
            let generation = self.set["metadata"]["generation"].as_i64().unwrap();
            self.set["metadata"]["generation"] = json!(generation + 1);
            let version = self.next_version();
            self.set["metadata"]["resourceVersion"] = version;
        }
    }

    /// Applies one write as the server would. `previous` is the version that the last write of the same object
    /// returned.
    ///
    /// # Errors
    /// If the server refuses it.
    pub fn apply(&mut self, write: &Write, previous: &mut Option<String>) -> Result<(), Refused> {
        match write {
            Write::Create { target, body, .. } => self.create(target.resource, &target.name, body.render()),
            Write::Delete {
                target, precondition, ..
            } => self.delete(target.resource, &target.name, precondition),
            Write::Patch {
                target,
                part,
                patch: change,
                precondition,
                ..
            } => {
                let version = self.next_version();
                let stored = if target.resource == self.resource {
                    Some(&mut self.set)
                } else {
                    self.store(target.resource).get_mut(&target.name)
                };
                let stored = stored.ok_or(Refused::NotFound)?;
                patch(stored, (*part, change, precondition), previous, version)
            }
        }
    }

    /// Applies the plan's status patch, and remembers what it tried.
    pub fn report(&mut self, plan: &Plan) {
        self.memory.count(plan.attempts.clone(), self.now);
        if let Some(newest) = &plan.newest {
            self.memory.newest = Arc::clone(newest);
        }
        if let Some(status) = &plan.status {
            merge(&mut self.set, &status.patch);
            let version = self.next_version();
            self.set["metadata"]["resourceVersion"] = version;
        }
    }

    fn store(&mut self, resource: ResourceId) -> &mut BTreeMap<String, Value> {
        match resource {
            ResourceId::PODS => &mut self.pods,
            ResourceId::REVISIONS => &mut self.revisions,
            ResourceId::CLAIMS => &mut self.claims,
            kruise_api::imagepulljob::RESOURCE => &mut self.jobs,
            kruise_api::podunavailablebudget::RESOURCE => &mut self.budgets,
            other => panic!("no workload writes {other}"),
        }
    }

    fn create(&mut self, resource: ResourceId, name: &str, object: Value) -> Result<(), Refused> {
        let version = self.next_version();
        self.serial += 1;
        let (uid, now) = (format!("uid-{}", self.serial), text(self.now));
        let store = self.store(resource);
        if store.contains_key(name) {
            return Err(Refused::AlreadyExists);
        }
        let mut object = create(object, name, &uid, version, &now);
        if resource == ResourceId::PODS {
            object["status"] = json!({"phase": "Pending"});
        }
        store.insert(name.to_owned(), object);
        Ok(())
    }

    fn delete(&mut self, resource: ResourceId, name: &str, guard: &Precondition) -> Result<(), Refused> {
        if let Precondition::Unused(_, pod) = guard
            && self.pods.contains_key(&pod.name)
        {
            return Ok(());
        }
        let (version, now) = (self.next_version(), text(self.now));
        if resource == self.resource {
            may_delete(&self.set, guard)?;
            self.set["metadata"]["deletionTimestamp"] = json!(now);
            self.set["metadata"]["resourceVersion"] = version;
            return Ok(());
        }
        let store = self.store(resource);
        let object = store.get_mut(name).ok_or(Refused::NotFound)?;
        may_delete(object, guard)?;
        let metadata = &mut object["metadata"];
        if matches!(
            resource,
            ResourceId::REVISIONS | kruise_api::imagepulljob::RESOURCE
        ) {
            store.remove(name);
        } else if metadata["deletionTimestamp"].is_null() {
            metadata["deletionTimestamp"] = json!(now);
            metadata["resourceVersion"] = version;
        }
        self.collect_soon();
        Ok(())
    }

    /// The garbage collector, as it comes by itself.
    pub(crate) fn collect_soon(&mut self) {
        if !self.lazy {
            self.collect();
        }
    }

    /// Deleted claims go once no pod mounts them, and so do claims all of whose owners are gone.
    pub fn collect(&mut self) {
        let used: BTreeSet<String> = self.pods.values().flat_map(mounts).collect();
        let pods: BTreeSet<String> = self.pods.values().map(uid_of).collect();
        self.claims.retain(|name, claim| {
            let gone =
                |owner: &Value| owner["kind"] == "Pod" && !pods.contains(owner["uid"].as_str().unwrap());
            let owners = claim["metadata"]["ownerReferences"].as_array();
            let orphan = owners.is_some_and(|owners| !owners.is_empty() && owners.iter().all(gone));
            let leaves = orphan || claim["metadata"]["deletionTimestamp"].is_string();
            !leaves || used.contains(name)
        });
    }

    fn next_version(&mut self) -> Value {
        self.version += 1;
        json!(self.version.to_string())
    }

    /// Changes a pod as somebody else would (a node, a user), if it exists. The closure gets the time, and a number
    /// that no other change gets.
    pub fn touch(&mut self, name: &str, change: impl FnOnce(&mut Value, Timestamp, u64)) {
        let version = self.next_version();
        self.serial += 1;
        let (now, serial) = (self.now, self.serial);
        if let Some(pod) = self.pods.get_mut(name) {
            let before = pod.clone();
            change(pod, now, serial);
            if *pod != before {
                pod["metadata"]["resourceVersion"] = version;
            }
        }
    }
}

/// Names of the claims that a pod mounts.
pub fn mounts(pod: &Value) -> Vec<String> {
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    let names = volumes.filter_map(|volume| volume["persistentVolumeClaim"]["claimName"].as_str());
    names.map(str::to_owned).collect()
}

/// UID of an object.
pub fn uid_of(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap().to_owned()
}
