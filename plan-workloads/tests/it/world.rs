//! A model cluster: one CloneSet, its pods and revisions as a server stores them, and nodes that run the pods.
//!
//! Objects are JSON and go back to the planner through the same decoding as in production, so a patch that production
//! would misread is misread here.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

use jiff::{SignedDuration, Timestamp};
use kruise_api::cloneset::CloneSet;
use kruise_plan_kit::{Memory, Plan, Precondition, ResourceId, Write};
use kruise_plan_test_kit::{self as kit, Refused, condition, text};
use kruise_plan_workloads::cloneset::{Claims, Explain, Options, Snapshot, plan};
use kruise_views::{ClaimView, ImageJobView, NodeView, PodView, RevisionView};
use serde_json::{Value, json};

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

/// Everything that exists.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) set: Value,
    pub(crate) pods: BTreeMap<String, Value>,
    pub(crate) claims: BTreeMap<String, Value>,
    /// Claims by uid that some pod has mounted.
    pub(crate) mounted: BTreeSet<String>,
    /// Pods by uid whose containers were told to have other resources, and that do not say so yet.
    pub(crate) resized: BTreeSet<String>,
    /// Version of the set at which each claim was made, by its uid.
    pub(crate) made_at: BTreeMap<String, Value>,
    pub(crate) revisions: BTreeMap<String, Value>,
    pub(crate) jobs: BTreeMap<String, Value>,
    pub(crate) now: Timestamp,
    pub(crate) options: Options,
    /// An image whose containers never become ready.
    pub(crate) broken_image: Option<String>,
    /// What executing plans taught.
    pub(crate) memory: Memory,
    version: u64,
    serial: u64,
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
            set,
            pods: BTreeMap::new(),
            claims: BTreeMap::new(),
            mounted: BTreeSet::new(),
            resized: BTreeSet::new(),
            made_at: BTreeMap::new(),
            revisions: BTreeMap::new(),
            jobs: BTreeMap::new(),
            now,
            options: Options::DEFAULT,
            broken_image: None,
            memory: Memory::default(),
            version: 1,
            serial: 0,
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
        plan(
            &Snapshot {
                set: &set,
                api_version: API_VERSION,
                pods,
                claims: &self.claims_of(&set),
                revisions: &self.revision_views(),
                pull_jobs: &self.job_views(),
                node: &|name| NODES.get(name),
                options: self.options,
                memory: &self.memory,
                explain,
            },
            self.now,
        )
    }

    /// Lets the clock run.
    pub(crate) fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// Edits the specification as a user would: a new generation.
    pub(crate) fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        let before = self.set["spec"].clone();
        change(&mut self.set["spec"]);
        if before != self.set["spec"] {
            let generation = self.set["metadata"]["generation"].as_i64().unwrap();
            self.set["metadata"]["generation"] = json!(generation + 1);
            let version = self.next_version();
            self.set["metadata"]["resourceVersion"] = version;
        }
    }

    /// Applies one write as the server would. `previous` is the version that the chain's last step returned.
    pub(crate) fn apply(&mut self, write: &Write, previous: &mut Option<String>) -> Result<(), Refused> {
        match write {
            Write::Create { target, body, .. } => self.create(target.resource, &target.name, body.render()),
            Write::Delete {
                target, precondition, ..
            } => self.delete(target.resource, &target.name, precondition),
            Write::Patch {
                target,
                part,
                patch,
                precondition,
                ..
            } => {
                let version = self.next_version();
                let stored = match target.resource {
                    ResourceId::PODS => self.pods.get_mut(&target.name),
                    ResourceId::REVISIONS => self.revisions.get_mut(&target.name),
                    ResourceId::CLONESETS => Some(&mut self.set),
                    ResourceId::CLAIMS => self.claims.get_mut(&target.name),
                    other => panic!("no CloneSet changes {other}"),
                };
                let stored = stored.ok_or(Refused::NotFound)?;
                kit::patch(stored, (*part, patch, precondition), previous, version)
            }
        }
    }

    /// Applies the plan's status patch.
    pub(crate) fn report(&mut self, plan: &Plan) {
        if let Some(status) = &plan.status {
            kit::merge(&mut self.set, &status.patch);
            let version = self.next_version();
            self.set["metadata"]["resourceVersion"] = version;
        }
    }

    fn create(&mut self, resource: ResourceId, name: &str, object: Value) -> Result<(), Refused> {
        let version = self.next_version();
        self.serial += 1;
        let store = match resource {
            ResourceId::PODS => &mut self.pods,
            ResourceId::REVISIONS => &mut self.revisions,
            ResourceId::CLAIMS => &mut self.claims,
            ResourceId::IMAGE_PULL_JOBS => &mut self.jobs,
            other => panic!("no CloneSet creates {other}"),
        };
        if store.contains_key(name) {
            return Err(Refused::AlreadyExists);
        }
        let (uid, now) = (format!("uid-{}", self.serial), text(self.now));
        let mut object = kit::create(object, name, &uid, version, &now);
        if resource == ResourceId::PODS {
            object["status"] = json!({"phase": "Pending"});
            let claims = mounts(&object)
                .into_iter()
                .filter_map(|name| self.claims.get(&name));
            self.mounted.extend(claims.map(uid_of));
        }
        if resource == ResourceId::CLAIMS {
            let version = self.set["metadata"]["resourceVersion"].clone();
            self.made_at.insert(uid_of(&object), version);
        }
        match resource {
            ResourceId::PODS => self.pods.insert(name.to_owned(), object),
            ResourceId::REVISIONS => self.revisions.insert(name.to_owned(), object),
            ResourceId::IMAGE_PULL_JOBS => self.jobs.insert(name.to_owned(), object),
            _ => self.claims.insert(name.to_owned(), object),
        };
        Ok(())
    }

    fn delete(&mut self, resource: ResourceId, name: &str, guard: &Precondition) -> Result<(), Refused> {
        if let Precondition::Unused(_, pod) = guard
            && self.pods.contains_key(&pod.name)
        {
            return Ok(());
        }
        let version = self.next_version();
        let store = match resource {
            ResourceId::PODS => &mut self.pods,
            ResourceId::REVISIONS => &mut self.revisions,
            ResourceId::CLAIMS => &mut self.claims,
            ResourceId::IMAGE_PULL_JOBS => &mut self.jobs,
            other => panic!("no CloneSet deletes {other}"),
        };
        let object = store.get_mut(name).ok_or(Refused::NotFound)?;
        kit::may_delete(object, guard)?;
        let metadata = &mut object["metadata"];
        if matches!(resource, ResourceId::REVISIONS | ResourceId::IMAGE_PULL_JOBS) {
            store.remove(name);
        } else if metadata["deletionTimestamp"].is_null() {
            metadata["deletionTimestamp"] = json!(text(self.now));
            metadata["resourceVersion"] = version;
        }
        self.collect();
        Ok(())
    }

    /// Deleted claims go once no pod mounts them, and so do claims whose pod is gone.
    fn collect(&mut self) {
        let used: BTreeSet<String> = self.pods.values().flat_map(mounts).collect();
        let pods: BTreeSet<String> = self.pods.values().map(uid_of).collect();
        self.claims.retain(|name, claim| {
            let owner = &claim["metadata"]["ownerReferences"][0];
            let orphan = owner["kind"] == "Pod" && !pods.contains(owner["uid"].as_str().unwrap());
            let leaves = orphan || claim["metadata"]["deletionTimestamp"].is_string();
            !leaves || used.contains(name)
        });
    }

    fn next_version(&mut self) -> Value {
        self.version += 1;
        json!(self.version.to_string())
    }

    /// Changes a pod as somebody else would (a node, a user), if it exists.
    pub(crate) fn touch(&mut self, name: &str, change: impl FnOnce(&mut Value, Timestamp, u64)) {
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

    /// The scheduler binds a pod.
    pub(crate) fn bind(&mut self, name: &str, node: &str) {
        self.touch(name, |pod, _, _| {
            if pod["spec"]["nodeName"].is_null() {
                pod["spec"]["nodeName"] = json!(node);
            }
        });
    }

    /// The node starts what is to be started, restarts what has a new image, and reports readiness. A crashed
    /// container stays down until [`Self::recover`].
    pub(crate) fn kubelet(&mut self, name: &str) {
        let broken = self.broken_image.clone();
        self.touch(name, |pod, now, serial| {
            let ended = matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded"));
            if pod["spec"]["nodeName"].is_null() || ended {
                return;
            }
            pod["status"]["phase"] = json!("Running");
            let containers = pod["spec"]["containers"].as_array().unwrap().clone();
            let statuses: Vec<Value> = containers
                .iter()
                .map(|container| run(pod, container, serial, broken.as_deref()))
                .collect();
            pod["status"]["containerStatuses"] = json!(statuses);
            report_readiness(pod, now);
        });
    }

    /// A container stops passing its probe.
    pub(crate) fn crash(&mut self, name: &str) {
        self.touch(name, |pod, now, _| {
            if pod["status"]["containerStatuses"].is_array() {
                pod["status"]["containerStatuses"][0]["ready"] = json!(false);
                report_readiness(pod, now);
            }
        });
    }

    /// It passes again, after a restart.
    pub(crate) fn recover(&mut self, name: &str) {
        let broken = self.broken_image.clone();
        self.touch(name, |pod, now, _| {
            if let Some(status) = pod.pointer_mut("/status/containerStatuses/0")
                && status["ready"] == false
                && status["image"].as_str() != broken.as_deref()
            {
                let restarts = status["restartCount"].as_i64().unwrap_or(0);
                status["ready"] = json!(true);
                status["restartCount"] = json!(restarts + 1);
                report_readiness(pod, now);
            }
        });
    }

    /// The node evicts a pod.
    pub(crate) fn evict(&mut self, name: &str) {
        self.touch(name, |pod, now, _| {
            pod["status"]["phase"] = json!("Failed");
            set_condition(pod, "Ready", false, now);
        });
    }

    /// A pod that is being deleted is gone.
    pub(crate) fn terminate(&mut self, name: &str) {
        if self
            .pods
            .get(name)
            .is_some_and(|pod| pod["metadata"]["deletionTimestamp"].is_string())
        {
            self.pods.remove(name);
            self.collect();
        }
    }
}

/// Names of the claims that a pod mounts.
pub(crate) fn mounts(pod: &Value) -> Vec<String> {
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    let names = volumes.filter_map(|volume| volume["persistentVolumeClaim"]["claimName"].as_str());
    names.map(str::to_owned).collect()
}

pub(crate) fn uid_of(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap().to_owned()
}

fn run(pod: &Value, container: &Value, serial: u64, broken: Option<&str>) -> Value {
    let (name, image) = (&container["name"], &container["image"]);
    let statuses = pod["status"]["containerStatuses"].as_array();
    let before = statuses.and_then(|list| list.iter().find(|status| status["name"] == *name));
    let memory = |resources: &Value| resources["limits"]["memory"].clone();
    let given = &container["resources"];
    match before {
        Some(same) if same["image"] == *image && memory(&same["resources"]) == memory(given) => {
            let mut same = same.clone();
            same["resources"] = given.clone();
            same
        }
        before => json!({
            "name": name, "image": image, "resources": given, "imageID": format!("sha256:{}", image.as_str().unwrap()),
            "containerID": format!("cri://{serial}"), "ready": image.as_str() != broken,
            "restartCount": before.map_or(0, |status| status["restartCount"].as_i64().unwrap_or(0) + 1),
        }),
    }
}

fn report_readiness(pod: &mut Value, now: Timestamp) {
    let statuses = pod["status"]["containerStatuses"].as_array().unwrap();
    let containers = statuses.iter().all(|status| status["ready"] == true);
    let gates = pod["spec"]["readinessGates"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let gates = gates
        .iter()
        .all(|gate| condition(pod, gate["conditionType"].as_str().unwrap()) == Some("True"));
    set_condition(pod, "ContainersReady", containers, now);
    set_condition(pod, "Ready", containers && gates, now);
}

fn set_condition(pod: &mut Value, kind: &str, truth: bool, now: Timestamp) {
    let wanted = if truth { "True" } else { "False" };
    if condition(pod, kind) == Some(wanted) {
        return;
    }
    kit::set_condition(pod, kind, wanted, &text(now));
}
