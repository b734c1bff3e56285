//! A UnitedDeployment, workloads and pods, and a server that carries plans out.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};
use kruise_api::uniteddeployment::{Child, UnitedDeployment};
use kruise_plan_kit::{Explain, Memory, Phase, Plan, ResourceId, Write};
use kruise_plan_test_kit::{Agenda, create, decode, fingerprint, may_delete, merge, patch, text};
use kruise_plan_united::{Snapshot, Workload, plan, resource};
use kruise_views::RevisionView;
use serde_json::{Value, json};

pub(crate) const API_VERSION: &str = "apps.kruise.io/v1beta1";
pub(crate) const SUBSET: &str = "apps.kruise.io/subset-name";
pub(crate) const REVISION: &str = "apps.kruise.io/controller-revision-hash";
const RESERVED: &str = "apps.kruise.io/united-deployment-reserved-pod";

#[derive(Clone)]
pub(crate) struct World {
    pub(crate) now: Timestamp,
    pub(crate) united: Value,
    /// Workloads by kind and name, whosever they are.
    pub(crate) workloads: BTreeMap<(Child, String), Value>,
    pub(crate) pods: BTreeMap<String, Value>,
    pub(crate) revisions: BTreeMap<String, Value>,
    pub(crate) memory: Memory,
    /// Subsets whose pods find no node.
    pub(crate) impossible: BTreeSet<String>,
    /// Images whose containers never become Ready.
    pub(crate) broken: BTreeSet<String>,
    /// Writes that were carried out: `verb resource/name`.
    pub(crate) written: Vec<String>,
    pub(crate) reports: usize,
    pub(crate) events: Vec<String>,
    /// What the server answers to writes of workloads.
    pub(crate) refuses: Option<String>,
    /// The version of workloads of ours.
    pub(crate) served: &'static str,
    agenda: Agenda<()>,
    version: u64,
}

/// A template of this kind with this image.
pub(crate) fn template(child: Child, image: &str) -> Value {
    let pods = json!({"metadata": {"labels": {"app": "api"}}, "spec": {"containers": [{"name": "main", "image": image}]}});
    let spec = json!({"selector": {"matchLabels": {"app": "api"}}, "template": pods});
    json!({child.member(): {"metadata": {"labels": {"app": "api"}}, "spec": spec}})
}

/// Subsets of these names.
pub(crate) fn subsets(names: &[&str]) -> Value {
    names.iter().map(|name| json!({"name": name})).collect()
}

impl World {
    /// `api` with these subsets, which is not reconciled yet.
    pub(crate) fn new(child: Child, replicas: i32, subsets: &Value) -> Self {
        let spec = json!({"replicas": replicas, "revisionHistoryLimit": 10, "selector": {"matchLabels": {"app": "api"}},
            "template": template(child, "api:1"), "topology": {"subsets": subsets},
            "updateStrategy": {"type": "Manual", "manualUpdate": {}}});
        Self {
            now: "2026-01-01T01:00:00Z".parse().unwrap(),
            united: json!({"apiVersion": API_VERSION, "kind": "UnitedDeployment", "spec": spec,
                "metadata": {"name": "api", "namespace": "shop", "uid": "united", "resourceVersion": "1", "generation": 1}}),
            workloads: BTreeMap::new(),
            pods: BTreeMap::new(),
            revisions: BTreeMap::new(),
            memory: Memory::default(),
            impossible: BTreeSet::new(),
            broken: BTreeSet::new(),
            written: Vec::new(),
            reports: 0,
            events: Vec::new(),
            refuses: None,
            served: "v1beta1",
            agenda: Agenda::default(),
            version: 1,
        }
    }

    fn bump(&mut self) -> Value {
        self.version += 1;
        json!(self.version.to_string())
    }

    /// The author changes the specification.
    pub(crate) fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        change(&mut self.united["spec"]);
        let generation = self.united["metadata"]["generation"].as_i64().unwrap();
        self.united["metadata"]["generation"] = json!(generation + 1);
        self.united["metadata"]["resourceVersion"] = self.bump();
    }

    /// Sets the image in the template, whatever its kind.
    pub(crate) fn image(&mut self, image: &str) {
        self.edit(|spec| {
            let templates = spec["template"].as_object_mut().unwrap();
            for template in templates.values_mut() {
                template["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
            }
        });
    }

    pub(crate) fn scale(&mut self, replicas: i32) {
        self.edit(|spec| spec["replicas"] = json!(replicas));
    }

    /// Stores a workload as somebody else would.
    pub(crate) fn store(&mut self, child: Child, mut object: Value) {
        let version = self.bump();
        let uid = format!("uid-{}", self.version);
        for (member, value) in [("uid", json!(uid)), ("resourceVersion", version)] {
            if object["metadata"][member].is_null() {
                object["metadata"][member] = value;
            }
        }
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        self.workloads.insert((child, name), object);
    }

    fn api_version(&self, child: Child) -> String {
        match child.definition() {
            Some(kind) => format!("{}/{}", kind.group, self.served),
            None => child.api_version().to_owned(),
        }
    }

    pub(crate) fn plan(&self, explain: Explain) -> Plan {
        let united = UnitedDeployment::from_value(self.united.clone()).unwrap();
        let concerned = |object: &&Value| {
            let metadata = &object["metadata"];
            let owner = controller(object);
            metadata["namespace"] == "shop"
                && metadata["labels"][SUBSET].is_string()
                && (owner.is_null() || owner == "united")
        };
        let workloads = self.workloads.iter().filter(|(_, object)| concerned(object));
        let workloads: Vec<Workload> = workloads
            .map(|((child, _), object)| Workload {
                child: *child,
                view: decode(object),
                pods: self.pods_of(object).into_iter().map(decode).collect(),
            })
            .collect();
        let revisions: Vec<Arc<RevisionView>> = self.revisions.values().map(decode).collect();
        let child = united.spec.child().map(|(child, _)| self.api_version(child));
        let snapshot = Snapshot {
            united: &united,
            api_version: API_VERSION,
            child_api_version: child.as_deref(),
            workloads: &workloads,
            revisions: &revisions,
            memory: &self.memory,
            explain,
        };
        plan(&snapshot, self.now)
    }

    fn pods_of(&self, workload: &Value) -> Vec<&Value> {
        let uid = &workload["metadata"]["uid"];
        self.pods.values().filter(|pod| controller(pod) == *uid).collect()
    }

    /// Carries a plan out. Returns whether it had anything to do.
    pub(crate) fn execute(&mut self, mut plan: Plan) -> bool {
        let mut events: Vec<String> = plan
            .events
            .iter()
            .map(|event| format!("{}: {}", event.reason, event.message))
            .collect();
        let has_writes = !plan.writes.is_empty();
        plan.writes.sort_by_key(|object| object.phase);
        let (mut scale_error, mut update_error) = (None, None);
        let mut is_cancelled = false;
        for object in &plan.writes {
            let [step] = &object.steps[..] else {
                panic!("one write for an object")
            };
            if is_cancelled && object.phase != Phase::Revisions {
                continue;
            }
            match self.apply(&step.write) {
                Ok(()) => events.extend(
                    step.done
                        .iter()
                        .map(|event| format!("{}: {}", event.reason, event.message)),
                ),
                Err(message) => {
                    is_cancelled |= object.phase == Phase::Revisions;
                    let note = step.failed.as_ref();
                    events.extend(note.map(|note| format!("{}: {}{message}", note.reason, note.prefix)));
                    let is_update = step.write.intent().as_str() == "update-subset";
                    *(if is_update {
                        &mut update_error
                    } else {
                        &mut scale_error
                    }) = Some(message);
                }
            }
        }
        (self.memory.scale_error, self.memory.update_error) = (scale_error, update_error);
        if let Some(status) = &plan.status {
            merge(&mut self.united, &status.patch);
            self.united["metadata"]["resourceVersion"] = self.bump();
            self.reports += 1;
        }
        self.events.extend(events);
        has_writes || plan.status.is_some()
    }

    fn apply(&mut self, write: &Write) -> Result<(), String> {
        let target = write.target();
        assert_eq!(target.namespace, "shop");
        let child = Child::ALL
            .into_iter()
            .find(|child| resource(*child) == target.resource);
        if let Some(refusal) = self.refuses.clone().filter(|_| child.is_some()) {
            return Err(refusal);
        }
        let version = self.bump();
        let uid = format!("uid-{}", self.version);
        self.written.push(write.to_string());
        let now = text(self.now);
        match write {
            Write::Create {
                target,
                body,
                owner_uid,
                ..
            } => {
                assert_eq!(owner_uid.as_deref(), Some("united"));
                let mut object = create(body.render(), &target.name, &uid, version, &now);
                assert_eq!(controller(&object), "united");
                if let Some(child) = child {
                    if let Some(kind) = child.definition() {
                        kruise_api::convert::convert_as(kind, &mut object, &self.api_version(child)).unwrap();
                    }
                    let before = self.workloads.insert((child, target.name.clone()), object);
                    assert!(before.is_none(), "{write} of what exists");
                } else {
                    assert_eq!(target.resource, ResourceId::REVISIONS);
                    assert!(self.revisions.insert(target.name.clone(), object).is_none());
                }
            }
            Write::Patch {
                target,
                part,
                patch: change,
                precondition,
                ..
            } => {
                let stored = match child {
                    Some(child) => self.workloads.get_mut(&(child, target.name.clone())),
                    None if target.resource == ResourceId::PODS => self.pods.get_mut(&target.name),
                    None => self.revisions.get_mut(&target.name),
                };
                let stored = stored.unwrap_or_else(|| panic!("{write} of what there is"));
                let before = stored.clone();
                if child.is_some() && write.intent().as_str() != "adopt-subset" {
                    assert_eq!(controller(stored), "united", "{write}: only what is its own");
                }
                patch(stored, (*part, change, precondition), &mut None, version).unwrap();
                assert_ne!(*stored, before, "{write} changes something");
                assert_eq!(stored["spec"]["selector"], before["spec"]["selector"]);
            }
            Write::Delete {
                target, precondition, ..
            } => {
                let key = target.name.clone();
                let stored = match child {
                    Some(child) => {
                        let stored = self.workloads.remove(&(child, key)).unwrap();
                        assert_eq!(controller(&stored), "united", "{write}: only what is its own");
                        stored
                    }
                    None if target.resource == ResourceId::PODS => {
                        may_delete(&self.pods[&key], precondition)
                            .map_err(|refused| format!("{refused:?}"))?;
                        self.pods.remove(&key).unwrap()
                    }
                    None => self.revisions.remove(&key).unwrap(),
                };
                may_delete(&stored, precondition).unwrap();
            }
        }
        Ok(())
    }

    /// Controllers of workloads, and nodes. Returns whether anything changed.
    pub(crate) fn run_workloads(&mut self) -> bool {
        let before = (self.pods.clone(), self.workloads.clone());
        let owners: BTreeSet<String> = self
            .workloads
            .values()
            .map(|object| string(&object["metadata"]["uid"]))
            .collect();
        self.pods
            .retain(|_, pod| owners.contains(&string(&controller(pod))));
        let keys: Vec<_> = self.workloads.keys().cloned().collect();
        for key in keys {
            let object = self.workloads[&key].clone();
            self.run_workload(&key.1, key.0, &object);
            let own: Vec<&Value> = self.pods_of(&object);
            let ready = own.iter().filter(|pod| is_ready(pod)).count();
            let status = json!({"replicas": own.len(), "readyReplicas": ready});
            self.workloads.get_mut(&key).unwrap()["status"] = status;
        }
        before != (self.pods.clone(), self.workloads.clone())
    }

    fn run_workload(&mut self, name: &str, child: Child, object: &Value) {
        let replicas = object["spec"]["replicas"].as_i64().unwrap_or(1);
        let strategy = &object["spec"]["updateStrategy"];
        let partition = match self.served {
            "v1alpha1" if child == Child::CloneSet => &strategy["partition"],
            _ => &strategy["rollingUpdate"]["partition"],
        };
        let partition = partition.as_i64().unwrap_or(0);
        let pod_name = |index: i64| format!("{name}-{index}");
        let surplus: Vec<String> = self
            .pods_of(object)
            .iter()
            .map(|pod| string(&pod["metadata"]["name"]))
            .collect();
        for pod in surplus {
            let index: i64 = pod.rsplit_once('-').unwrap().1.parse().unwrap();
            if index >= replicas {
                self.pods.remove(&pod);
            }
        }
        let is_stuck = child == Child::StatefulSet
            && self
                .pods_of(object)
                .iter()
                .any(|pod| pod["status"]["phase"] == "Running" && !is_ready(pod));
        for index in 0..replicas {
            let current = self.pods.get(&pod_name(index));
            let is_current = current.is_some_and(|pod| pod["template"] == object["spec"]["template"]);
            let stays = current.is_some() && (is_current || index < partition || is_stuck);
            if !stays {
                let version = self.bump();
                let labels = &object["spec"]["template"]["metadata"]["labels"];
                let owner = json!({"apiVersion": object["apiVersion"], "kind": child.kind(), "name": name,
                    "uid": object["metadata"]["uid"], "controller": true});
                let pod = json!({"metadata": {"name": pod_name(index), "namespace": "shop", "uid": format!("pod-{}", self.version),
                        "resourceVersion": version, "creationTimestamp": text(self.now), "labels": labels,
                        "ownerReferences": [owner]},
                    "spec": object["spec"]["template"]["spec"], "template": object["spec"]["template"]});
                self.pods.insert(pod_name(index), pod);
            }
            let (now, subset) = (text(self.now), string(&object["metadata"]["labels"][SUBSET]));
            let finds_no_node = self.impossible.contains(&subset);
            let pod = self.pods.get_mut(&pod_name(index)).unwrap();
            let works = !self
                .broken
                .contains(pod["spec"]["containers"][0]["image"].as_str().unwrap());
            let runs = pod["status"]["phase"] == "Running";
            if finds_no_node && !runs {
                pod["status"] = json!({"phase": "Pending", "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]});
            } else if !runs {
                pod["spec"]["nodeName"] = json!("n1");
                let ready = if works { "True" } else { "False" };
                pod["status"] = json!({"phase": "Running", "conditions": [
                    {"type": "Ready", "status": ready, "lastTransitionTime": now}]});
            }
        }
    }

    /// The controller runs once.
    pub(crate) fn reconcile(&mut self) -> bool {
        let plan = self.plan(Explain::No);
        self.agenda.note((), self.state(), self.now, &plan);
        self.execute(plan)
    }

    /// Another number if anything is different that the controller reads.
    fn state(&self) -> u64 {
        let objects = (&self.united, &self.workloads, &self.pods, &self.revisions);
        fingerprint(&(objects, &self.memory, &self.refuses, self.served))
    }

    /// Everything runs until nothing changes, without time passing. The controller plans when it has a reason.
    pub(crate) fn settle(&mut self) {
        for _ in 0..200 {
            let acted = self.agenda.is_due(&(), self.state(), self.now) && self.reconcile();
            let moved = self.run_workloads();
            if !moved && (!acted || self.refuses.is_some()) {
                return;
            }
        }
        panic!(
            "the controller never rests: {:?}",
            &self.written[self.written.len() - 20..]
        );
    }

    /// Time passes, second by second, and everything runs.
    pub(crate) fn pass(&mut self, seconds: i64) {
        for _ in 0..seconds {
            self.now += SignedDuration::from_secs(1);
            self.settle();
        }
    }

    /// Replicas of the workloads of `united` by subset, such as `a=3 b=2`.
    pub(crate) fn sizes(&self) -> String {
        self.of_subsets(|object| object["spec"]["replicas"].to_string())
    }

    /// Something about each workload of `united`, by subset.
    pub(crate) fn of_subsets(&self, of: impl Fn(&Value) -> String) -> String {
        let own = self.own();
        let mut all: Vec<String> = own
            .iter()
            .map(|object| format!("{}={}", string(&object["metadata"]["labels"][SUBSET]), of(object)))
            .collect();
        all.sort();
        all.join(" ")
    }

    /// The workloads that `united` controls.
    pub(crate) fn own(&self) -> Vec<&Value> {
        self.workloads
            .values()
            .filter(|object| controller(object) == "united")
            .collect()
    }

    /// The workload of a subset.
    pub(crate) fn workload(&self, subset: &str) -> &Value {
        let own = self.own();
        own.into_iter()
            .find(|object| object["metadata"]["labels"][SUBSET] == subset)
            .unwrap()
    }

    /// Somebody edits the workload of a subset.
    pub(crate) fn touch(&mut self, subset: &str, change: impl FnOnce(&mut Value)) {
        let version = self.bump();
        let mut all = self.workloads.values_mut();
        let object = all
            .find(|object| object["metadata"]["labels"][SUBSET] == *subset)
            .unwrap();
        change(object);
        object["metadata"]["resourceVersion"] = version;
    }

    /// Images of the pods of a subset, such as `api:1 api:2`.
    pub(crate) fn images(&self, subset: &str) -> String {
        let pods = self
            .pods
            .values()
            .filter(|pod| pod["metadata"]["labels"][SUBSET] == subset);
        let images: Vec<String> = pods
            .map(|pod| string(&pod["spec"]["containers"][0]["image"]))
            .collect();
        images.join(" ")
    }

    pub(crate) fn status(&self) -> &Value {
        &self.united["status"]
    }

    /// Status of a condition, its reason and its message.
    pub(crate) fn condition(&self, kind: &str) -> String {
        condition(&self.status()["conditions"], kind)
    }

    /// The condition `Schedulable` of a subset.
    pub(crate) fn schedulable(&self, subset: &str) -> String {
        condition(&self.entry(subset)["conditions"], "Schedulable")
    }

    pub(crate) fn entry(&self, subset: &str) -> &Value {
        let entries = self.status()["subsetStatuses"].as_array().unwrap();
        entries.iter().find(|entry| entry["name"] == subset).unwrap()
    }

    /// How many pods of each subset have the label of reserved pods with this value.
    pub(crate) fn labelled(&self, value: &str) -> String {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for pod in self.pods.values() {
            let labels = &pod["metadata"]["labels"];
            let is_it = usize::from(labels[RESERVED] == value);
            *counts.entry(string(&labels[SUBSET])).or_default() += is_it;
        }
        let counts: Vec<String> = counts
            .iter()
            .map(|(subset, count)| format!("{subset}={count}"))
            .collect();
        counts.join(" ")
    }

    /// The writes since it was last asked.
    pub(crate) fn writes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.written)
    }
}

fn condition(all: &Value, kind: &str) -> String {
    let all = all.as_array().into_iter().flatten();
    let found = all.into_iter().find(|condition| condition["type"] == kind);
    let found = found.unwrap_or(&Value::Null);
    let text = ["status", "reason", "message"].map(|member| found[member].as_str().unwrap_or_default());
    text.join(" ").trim().to_owned()
}

/// UID of the controller of an object; null if it has none.
pub(crate) fn controller(object: &Value) -> Value {
    let owners = object["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten();
    let mut controllers = owners.filter(|owner| owner["controller"] == true);
    controllers
        .next()
        .map(|owner| owner["uid"].clone())
        .unwrap_or_default()
}

pub(crate) fn is_ready(pod: &Value) -> bool {
    condition(&pod["status"]["conditions"], "Ready").starts_with("True")
}

pub(crate) fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
