//! Nodes, workloads, their pods and PersistentPodStates in one namespace, and a server that carries plans out.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use kruise_api::persistentpodstate::PersistentPodState;
use kruise_plan_kit::{
    Explain, Memory, Need, Plan, Write,
    workloads::{Known, Workload},
};
use kruise_plan_podstate::persistentpodstate::{Generator, Nodes, Snapshot, plan};
use kruise_plan_test_kit::{
    Agenda, create, decode, fingerprint, may_delete, merge, patch, planned, reads_first, text,
};
use kruise_views::{NodeView, PodView, WorkloadView};
use serde_json::{Value, json};

pub(crate) const NAMESPACE: &str = "mq";
pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";
pub(crate) const HOST: &str = "kubernetes.io/hostname";
pub(crate) const GENERATE: &str = "kruise.io/auto-generate-persistent-pod-state";
pub(crate) const REQUIRED: &str = "kruise.io/required-persistent-topology";
pub(crate) const PREFERRED: &str = "kruise.io/preferred-persistent-topology";
pub(crate) const NOTED: &str = "kruise.io/persistent-pod-annotations";

pub(crate) struct World {
    pub(crate) now: Timestamp,
    nodes: BTreeMap<String, Value>,
    /// By group and name; those of a kind of their own have the group `example.com`.
    workloads: BTreeMap<(String, String), Value>,
    pods: BTreeMap<String, Value>,
    pub(crate) states: BTreeMap<String, Value>,
    memory: BTreeMap<String, Memory>,
    /// Writes of PersistentPodStates that were carried out: `verb name`.
    pub(crate) written: Vec<String>,
    /// Status patches that were carried out.
    pub(crate) reports: Vec<Value>,
    /// Events: `Reason on kind: message`.
    pub(crate) events: Vec<String>,
    /// Pods that were read for their annotations.
    pub(crate) reads: usize,
    /// The pods cannot be read, and why.
    pub(crate) hides: Option<String>,
    /// Pods that can be read all the same.
    pub(crate) shown: BTreeSet<String>,
    /// Workloads that cannot be read, or not yet.
    pub(crate) known: Option<Known>,
    agenda: Agenda<String>,
    version: u64,
}

fn workload_of(group: &str, name: &str) -> Workload {
    let kind = if group == "example.com" {
        "Game"
    } else {
        "StatefulSet"
    };
    Workload::new(group, kind, name)
}

fn api_version(group: &str) -> &'static str {
    match group {
        "apps" => "apps/v1",
        "example.com" => "example.com/v1",
        _ => "apps.kruise.io/v1beta1",
    }
}

impl World {
    /// With four nodes: `a1` and `a2` in zone a, `b1` in zone b, and `bare` without a zone.
    pub(crate) fn new() -> Self {
        let mut world = Self {
            now: "2026-01-01T01:00:00Z".parse().unwrap(),
            nodes: BTreeMap::new(),
            workloads: BTreeMap::new(),
            pods: BTreeMap::new(),
            states: BTreeMap::new(),
            memory: BTreeMap::new(),
            written: Vec::new(),
            reports: Vec::new(),
            events: Vec::new(),
            reads: 0,
            hides: None,
            shown: BTreeSet::new(),
            known: None,
            agenda: Agenda::default(),
            version: 1,
        };
        for (node, zone) in [
            ("a1", Some("a")),
            ("a2", Some("a")),
            ("b1", Some("b")),
            ("bare", None),
        ] {
            world.node(node, zone);
        }
        world
    }

    fn bump(&mut self) -> Value {
        self.version += 1;
        json!(self.version.to_string())
    }

    pub(crate) fn node(&mut self, name: &str, zone: Option<&str>) {
        let mut labels = json!({(HOST): name});
        if let Some(zone) = zone {
            labels[ZONE] = json!(zone);
        }
        let version = self.bump();
        self.nodes.insert(
            name.to_owned(),
            json!({"metadata": {"name": name, "uid": name, "resourceVersion": version, "labels": labels}}),
        );
    }

    pub(crate) fn remove_node(&mut self, name: &str) {
        self.nodes.remove(name);
    }

    /// A workload of a group.
    pub(crate) fn workload(&mut self, group: &str, name: &str, spec: &Value) {
        let version = self.bump();
        let uid = format!("uid-{}", self.version);
        let object = json!({"metadata": {"name": name, "namespace": NAMESPACE, "uid": uid,
            "resourceVersion": version, "annotations": {}}, "spec": spec});
        self.workloads.insert((group.to_owned(), name.to_owned()), object);
    }

    fn group_of(&self, name: &str) -> String {
        let mut keys = self.workloads.keys();
        keys.find(|(_, own)| own == name).unwrap().0.clone()
    }

    /// Its author changes a workload.
    pub(crate) fn change(&mut self, name: &str, change: &Value) {
        let key = (self.group_of(name), name.to_owned());
        let version = self.bump();
        let object = self.workloads.get_mut(&key).unwrap();
        merge(object, change);
        object["metadata"]["resourceVersion"] = version;
    }

    pub(crate) fn annotate(&mut self, name: &str, annotations: &Value) {
        self.change(name, &json!({"metadata": {"annotations": annotations}}));
    }

    /// As [`Self::annotate`], of one of several workloads of one name.
    pub(crate) fn annotate_group(&mut self, key: &(String, String), annotations: &Value) {
        let version = self.bump();
        let object = self.workloads.get_mut(key).unwrap();
        merge(
            object,
            &json!({"metadata": {"annotations": annotations, "resourceVersion": version}}),
        );
    }

    pub(crate) fn scale(&mut self, name: &str, replicas: i32) {
        self.change(name, &json!({"spec": {"replicas": replicas}}));
    }

    pub(crate) fn replicas(&self, name: &str) -> i64 {
        let key = (self.group_of(name), name.to_owned());
        self.workloads[&key]["spec"]["replicas"].as_i64().unwrap()
    }

    /// A workload goes, and what it controls with it.
    pub(crate) fn remove_workload(&mut self, name: &str) {
        let key = (self.group_of(name), name.to_owned());
        let uid = self.workloads.remove(&key).unwrap()["metadata"]["uid"].clone();
        let is_owned = |object: &Value| object["metadata"]["ownerReferences"][0]["uid"] == uid;
        self.pods.retain(|_, pod| !is_owned(pod));
        self.states.retain(|_, state| !is_owned(state));
    }

    pub(crate) fn uid(&self, name: &str) -> Value {
        let key = (self.group_of(name), name.to_owned());
        self.workloads[&key]["metadata"]["uid"].clone()
    }

    /// The workload creates a pod, which is not scheduled yet.
    pub(crate) fn pod(&mut self, workload: &str, name: &str) {
        let group = self.group_of(workload);
        let target = workload_of(&group, workload);
        let version = self.bump();
        let owner = json!({"apiVersion": api_version(&group), "kind": target.kind, "name": workload,
            "uid": self.uid(workload), "controller": true});
        let pod = json!({"metadata": {"name": name, "namespace": NAMESPACE, "uid": format!("uid-{}", self.version),
                "resourceVersion": version, "ownerReferences": [owner]},
            "spec": {"containers": []}, "status": {"phase": "Pending"}});
        self.pods.insert(name.to_owned(), pod);
    }

    /// Somebody changes a pod.
    pub(crate) fn edit_pod(&mut self, name: &str, change: &Value) {
        let version = self.bump();
        let pod = self
            .pods
            .get_mut(name)
            .unwrap_or_else(|| panic!("there is a pod {name}"));
        merge(pod, change);
        pod["metadata"]["resourceVersion"] = version;
    }

    /// It is scheduled to a node, and becomes Ready or not.
    pub(crate) fn run(&mut self, name: &str, node: &str, is_ready: bool) {
        let status = if is_ready { "True" } else { "False" };
        self.edit_pod(
            name,
            &json!({"spec": {"nodeName": node}, "status": {"phase": "Running",
                "conditions": [{"type": "Ready", "status": status}]}}),
        );
    }

    /// A new pod that is Ready on a node.
    pub(crate) fn ready(&mut self, workload: &str, name: &str, node: &str) {
        self.pod(workload, name);
        self.run(name, node, true);
    }

    pub(crate) fn terminate(&mut self, name: &str) {
        let now = text(self.now);
        self.edit_pod(name, &json!({"metadata": {"deletionTimestamp": now}}));
    }

    pub(crate) fn remove_pod(&mut self, name: &str) {
        self.pods.remove(name);
    }

    pub(crate) fn has_pod(&self, name: &str) -> bool {
        self.pods.contains_key(name)
    }

    pub(crate) fn pod_json(&self, name: &str) -> Option<&Value> {
        self.pods.get(name)
    }

    /// Labels of a node, if it exists.
    pub(crate) fn labels_of(&self, node: &str) -> Option<&Value> {
        Some(&self.nodes.get(node)?["metadata"]["labels"])
    }

    pub(crate) fn pod_names(&self) -> Vec<String> {
        self.pods.keys().cloned().collect()
    }

    /// A user creates a PersistentPodState for a workload, that requires zones and prefers hosts.
    pub(crate) fn state(&mut self, name: &str, workload: &str, change: &Value) {
        let group = self.group_of(workload);
        let target = workload_of(&group, workload);
        let mut object = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "PersistentPodState",
            "metadata": {"name": name, "namespace": NAMESPACE, "generation": 1},
            "spec": {"targetRef": {"apiVersion": api_version(&group), "kind": target.kind, "name": workload},
                "requiredPersistentTopology": {"keys": [ZONE]},
                "preferredPersistentTopology": [{"weight": 100, "preference": {"keys": [HOST]}}]}});
        merge(&mut object, change);
        self.store(object);
    }

    pub(crate) fn store(&mut self, mut object: Value) {
        let version = self.bump();
        let uid = json!(format!("uid-{}", self.version));
        let metadata = &mut object["metadata"];
        metadata["resourceVersion"] = version;
        if metadata["uid"].is_null() {
            metadata["uid"] = uid;
        }
        let name = metadata["name"].as_str().unwrap().to_owned();
        self.states.insert(name, object);
    }

    /// A user changes a PersistentPodState.
    pub(crate) fn edit(&mut self, name: &str, change: &Value) {
        let mut stored = self.states[name].clone();
        let spec = stored["spec"].clone();
        merge(&mut stored, change);
        if stored["spec"] != spec {
            let generation = stored["metadata"]["generation"].as_i64().unwrap();
            stored["metadata"]["generation"] = json!(generation + 1);
        }
        self.store(stored);
    }

    /// Names of the pods that are recorded.
    pub(crate) fn recorded(&self, name: &str) -> String {
        let states = self.states[name]["status"]["podStates"].as_object();
        let names: Vec<&str> = states.into_iter().flatten().map(|(name, _)| &**name).collect();
        names.join(" ")
    }

    /// The record of a pod; null if there is none.
    pub(crate) fn record(&self, name: &str, pod: &str) -> Value {
        self.states[name]["status"]["podStates"][pod].clone()
    }

    /// The plan, once it needs nothing more to be read.
    pub(crate) fn plan(&mut self, name: &str, explain: Explain) -> Plan {
        let object = self.states.get(name).cloned();
        let state = object.map(|object| PersistentPodState::from_value(object).unwrap());
        let view = |object: &Value| decode::<WorkloadView>(object);
        let target = state.as_ref().map(|state| {
            let target = &state.spec.target_ref;
            let key = (target.group().to_owned(), target.name.clone());
            self.workloads.get(&key).map(view)
        });
        let found = target.flatten().map_or(Known::Gone, Known::Found);
        let target = self.known.clone().unwrap_or(found);
        let pods: Vec<Arc<PodView>> = match &target {
            Known::Found(found) => {
                let is_of = |pod: &&Value| pod["metadata"]["ownerReferences"][0]["uid"] == *found.uid;
                self.pods.values().filter(is_of).map(decode).collect()
            }
            _ => Vec::new(),
        };
        let named = self.workloads.iter().filter(|((_, own), _)| own == name);
        let generators: Vec<Generator> = named
            .map(|((group, name), object)| {
                let target = workload_of(group, name);
                let is_other = |(own, state): &(&String, &Value)| {
                    let found = &state["spec"]["targetRef"];
                    let of_group = found["apiVersion"]
                        .as_str()
                        .unwrap()
                        .starts_with(&format!("{group}/"));
                    *own != name && found["name"] == **name && of_group
                };
                Generator {
                    api_version: api_version(group).to_owned(),
                    other: self.states.iter().find(is_other).map(|(name, _)| name.clone()),
                    workload: target,
                    view: view(object),
                }
            })
            .collect();
        let mut memory = self.memory.get(name).cloned().unwrap_or_default();
        let mut reads = 0;
        let read = |need: &Need| {
            reads += 1;
            let name = need.target().name;
            let hidden = self.hides.clone().filter(|_| !self.shown.contains(&name));
            hidden.map_or_else(|| Ok(self.pods.get(&name).cloned()), Err)
        };
        let plan = planned(&mut memory, self.now, read, |memory| {
            let snapshot = Snapshot {
                namespace: NAMESPACE,
                name,
                state: state.as_ref(),
                target: target.clone(),
                pods: &pods,
                nodes: &Listed(&self.nodes),
                generators: &generators,
                memory,
                explain,
            };
            reads_first(plan(&snapshot, self.now))
        });
        self.reads += reads;
        self.memory.entry(name.to_owned()).or_default().unread = memory.unread;
        plan
    }

    /// Another number if anything is different that the controller reads.
    fn state_of_all(&self) -> u64 {
        let known = self.known.as_ref().map(std::mem::discriminant);
        fingerprint(&(&self.nodes, &self.workloads, &self.pods, &self.states, known))
    }

    /// Carries a plan out. Returns whether anything was done.
    pub(crate) fn execute(&mut self, name: &str, plan: Plan) -> bool {
        let line = |event: &kruise_plan_kit::EventNote| {
            let kind = event
                .about
                .as_ref()
                .map_or("PersistentPodState", |about| &*about.kind);
            format!("{} on {kind}: {}", event.reason, event.message)
        };
        for event in &plan.events {
            let line = line(event);
            // The runtime emits a repeated event once.
            if self.events.last() != Some(&line) {
                self.events.push(line);
            }
        }
        let mut memory = self.memory.remove(name).unwrap_or_default();
        memory.count(plan.attempts, self.now);
        self.memory.insert(name.to_owned(), memory);
        let done = plan.status.is_some() || !plan.writes.is_empty();
        if let Some(status) = &plan.status {
            let stored = &self.states[&status.target.name];
            assert_eq!(stored["metadata"]["resourceVersion"], *status.version);
            let mut changed = stored.clone();
            merge(&mut changed, &status.patch);
            assert_ne!(
                changed["status"], stored["status"],
                "a status patch changes something"
            );
            self.reports.push(status.patch.clone());
            self.store(changed);
        }
        for object in plan.writes {
            let [step] = &object.steps[..] else {
                panic!("one write for an object")
            };
            self.apply(&step.write);
            self.events.extend(step.done.iter().map(line));
        }
        done
    }

    /// Carries one write out.
    fn apply(&mut self, write: &Write) {
        let target = write.target();
        assert_eq!(
            (target.resource, &*target.namespace),
            (kruise_api::persistentpodstate::RESOURCE, NAMESPACE)
        );
        let version = self.bump();
        match write {
            Write::Create { body, owner_uid, .. } => {
                assert!(!self.states.contains_key(&target.name), "{write} of what exists");
                let uid = format!("uid-{}", self.version);
                let mut object = create(body.render(), &target.name, &uid, version, &text(self.now));
                assert_eq!(
                    object["metadata"]["ownerReferences"][0]["uid"].as_str(),
                    owner_uid.as_deref()
                );
                object["metadata"]["generation"] = json!(1);
                self.states.insert(target.name.clone(), object);
            }
            Write::Patch {
                part,
                patch: change,
                precondition,
                ..
            } => {
                let stored = self.states.get_mut(&target.name).unwrap();
                let before = stored["spec"].clone();
                patch(stored, (*part, change, precondition), &mut None, version).unwrap();
                assert_ne!(before, stored["spec"], "{write} changes something");
                let generation = stored["metadata"]["generation"].as_i64().unwrap();
                stored["metadata"]["generation"] = json!(generation + 1);
            }
            Write::Delete { precondition, .. } => {
                may_delete(&self.states[&target.name], precondition).unwrap();
                self.states.remove(&target.name);
            }
        }
        self.written
            .push(format!("{} {}", write.intent().as_str(), target.name));
    }

    /// The controller runs until nothing is due.
    pub(crate) fn settle(&mut self) {
        for _ in 0..100 {
            let mut is_done = true;
            for name in self.keys() {
                let state = self.state_of_all();
                if self.agenda.is_due(&name, state, self.now) {
                    is_done = false;
                    let plan = self.plan(&name, Explain::No);
                    self.agenda.note(name.clone(), state, self.now, &plan);
                    self.execute(&name, plan);
                }
            }
            if is_done {
                return;
            }
        }
        panic!("the controller never rests: {:?}", self.written);
    }

    /// Names of the PersistentPodStates, and of those that there may be.
    pub(crate) fn keys(&self) -> Vec<String> {
        let workloads = self.workloads.keys().map(|(_, name)| name.clone());
        let mut keys: Vec<String> = self.states.keys().cloned().chain(workloads).collect();
        keys.sort();
        keys.dedup();
        keys
    }

    /// The lines of the explanation that are about this: a pod, or the whole if it is empty.
    pub(crate) fn why(&mut self, name: &str, about: &str) -> String {
        let plan = self.plan(name, Explain::Yes);
        let lines: Vec<String> = plan
            .why
            .into_iter()
            .filter(|why| why.about == about)
            .map(|why| why.text)
            .collect();
        lines.join("; ")
    }
}

struct Listed<'a>(&'a BTreeMap<String, Value>);

impl Nodes for Listed<'_> {
    fn get(&self, name: &str) -> Option<Arc<NodeView>> {
        self.0.get(name).map(decode)
    }

    fn any(&self, holds: &dyn Fn(&NodeView) -> bool) -> bool {
        self.0.values().any(|node| holds(&decode::<NodeView>(node)))
    }
}
