//! A workload with its pods, nodes and a WorkloadSpread in one namespace; the webhook that counts new and deleted
//! pods; and a server that carries plans out.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};
use kruise_api::workloadspread::{Matched, WorkloadSpread, WorkloadSpreadStatus};
use kruise_plan_kit::{
    Explain, Memory, Need, Plan, ResourceId, Write,
    spread::{self, Choice, GoingPod, IGNORED, ListedKind, NewPod},
    workloads::Known,
};
use kruise_plan_spread::workloadspread::{Nodes, Snapshot, plan};
use kruise_plan_test_kit::{
    Agenda, decode, fingerprint, may_delete, merge, patch, planned, reads_first, text,
};
use kruise_views::{NodeView, PodView, WorkloadView, numbers_of};
use serde_json::{Value, json};

pub(crate) const MATCHED: &str = "apps.kruise.io/matched-workloadspread";
pub(crate) const COST: &str = "controller.kubernetes.io/pod-deletion-cost";
pub(crate) const ZONE: &str = "zone";

pub(crate) struct World {
    pub(crate) now: Timestamp,
    nodes: BTreeMap<String, Value>,
    pub(crate) workload: Value,
    pub(crate) replica_sets: BTreeMap<String, Value>,
    pub(crate) pods: BTreeMap<String, Value>,
    pub(crate) spread: Value,
    pub(crate) listed: Vec<ListedKind>,
    /// Names of the WorkloadSpreads that go before this one.
    pub(crate) before: BTreeSet<String>,
    /// What is known of the target, if not the truth.
    pub(crate) known: Option<Known>,
    memory: Memory,
    /// Writes of pods that were carried out: `verb name`.
    pub(crate) written: Vec<String>,
    /// Status patches that were carried out.
    pub(crate) reports: Vec<Value>,
    /// Events: `Reason: message`.
    pub(crate) events: Vec<String>,
    /// Pods that were read.
    pub(crate) reads: usize,
    /// Pods that cannot be read.
    pub(crate) hides: BTreeSet<String>,
    /// Pods whose patches the server refuses.
    pub(crate) refuses: BTreeSet<String>,
    agenda: Agenda<()>,
    version: u64,
}

/// A requirement that the zone of a node is this one.
pub(crate) fn in_zone(zone: &str) -> Value {
    json!({"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]})
}

/// Subset `name` in the zone of its name, with a limit unless it is null, and a label.
pub(crate) fn subset(name: &str, limit: Value) -> Value {
    let mut subset = json!({"name": name, "requiredNodeSelector": in_zone(name),
        "patch": {"metadata": {"labels": {"subset": name}, "annotations": {"note": name}},
                  "spec": {"priorityClassName": "high"}}});
    if !limit.is_null() {
        subset["maxReplicas"] = limit;
    }
    subset
}

impl World {
    /// With nodes `a1`, `a2`, `b1`, `b2` and `c1` in zones of their letter.
    pub(crate) fn new(api_version: &str, kind: &str, replicas: i32, subsets: Value) -> Self {
        let nodes = ["a1", "a2", "b1", "b2", "c1"].map(|name| {
            let node = json!({"metadata": {"name": name, "uid": name, "resourceVersion": "1",
                "labels": {ZONE: &name[..1]}}});
            (name.to_owned(), node)
        });
        let member = if kind == "Job" { "parallelism" } else { "replicas" };
        Self {
            now: "2026-01-01T01:00:00Z".parse().unwrap(),
            nodes: BTreeMap::from(nodes),
            workload: json!({"apiVersion": api_version, "kind": kind,
                "metadata": {"name": "web", "namespace": "shop", "uid": "uid-web", "resourceVersion": "1"},
                "spec": {member: replicas}}),
            replica_sets: BTreeMap::new(),
            pods: BTreeMap::new(),
            spread: json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "WorkloadSpread",
                "metadata": {"name": "web-spread", "namespace": "shop", "uid": "uid-spread", "generation": 1,
                             "resourceVersion": "1"},
                "spec": {"targetRef": {"apiVersion": api_version, "kind": kind, "name": "web"}, "subsets": subsets},
                "status": {}}),
            listed: Vec::new(),
            before: BTreeSet::new(),
            known: None,
            memory: Memory::default(),
            written: Vec::new(),
            reports: Vec::new(),
            events: Vec::new(),
            reads: 0,
            hides: BTreeSet::new(),
            refuses: BTreeSet::new(),
            agenda: Agenda::default(),
            version: 1,
        }
    }

    pub(crate) fn of_cloneset(replicas: i32, subsets: Value) -> Self {
        Self::new("apps.kruise.io/v1beta1", "CloneSet", replicas, subsets)
    }

    fn bump(&mut self) -> Value {
        self.version += 1;
        json!(self.version.to_string())
    }

    pub(crate) fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    pub(crate) fn node(&mut self, name: &str, change: &Value) {
        merge(self.nodes.get_mut(name).unwrap(), change);
    }

    pub(crate) fn scale(&mut self, replicas: i32) {
        let is_job = self.workload["kind"] == "Job";
        self.workload["spec"][if is_job { "parallelism" } else { "replicas" }] = json!(replicas);
    }

    /// A user changes the WorkloadSpread.
    pub(crate) fn edit(&mut self, change: &Value) {
        let version = self.bump();
        let before = self.spread["spec"].clone();
        merge(&mut self.spread, change);
        if before != self.spread["spec"] {
            let generation = self.spread["metadata"]["generation"].as_i64().unwrap();
            self.spread["metadata"]["generation"] = json!(generation + 1);
        }
        self.spread["metadata"]["resourceVersion"] = version;
    }

    pub(crate) fn typed(&self) -> WorkloadSpread {
        WorkloadSpread::from_value(self.spread.clone()).unwrap()
    }

    /// The webhook writes a status.
    pub(crate) fn record(&mut self, status: &WorkloadSpreadStatus) {
        let version = self.bump();
        self.spread["status"] = serde_json::to_value(status).unwrap();
        self.spread["metadata"]["resourceVersion"] = version;
    }

    fn owner(&self) -> Value {
        json!({"apiVersion": self.workload["apiVersion"], "kind": self.workload["kind"], "name": "web",
            "uid": "uid-web", "controller": true})
    }

    /// A pod that the webhook has not seen.
    pub(crate) fn pod(&mut self, name: &str, change: &Value) {
        let (version, now) = (self.bump(), text(self.now));
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop",
                "uid": format!("uid-{name}-{}", self.version), "resourceVersion": version,
                "creationTimestamp": now, "labels": {"app": "web"}, "ownerReferences": [self.owner()]},
            "spec": {"containers": [{"name": "main", "image": "web:1"}]}, "status": {"phase": "Pending"}});
        merge(&mut pod, change);
        self.pods.insert(name.to_owned(), pod);
    }

    /// A ReplicaSet of the Deployment, with the image of its template.
    pub(crate) fn replica_set(&mut self, hash: &str, image: &str) {
        let name = format!("web-{hash}");
        let set = json!({"metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}"),
                "labels": {"pod-template-hash": hash}, "ownerReferences": [self.owner()]},
            "spec": {"replicas": 1, "template": template(image, Some(hash))}});
        self.replica_sets.insert(name, set);
    }

    /// The template of the Deployment.
    pub(crate) fn template(&mut self, image: &str) {
        self.workload["spec"]["template"] = template(image, None);
    }

    /// What a pod of the ReplicaSet with this hash has.
    pub(crate) fn of_set(hash: &str) -> Value {
        let name = format!("web-{hash}");
        json!({"metadata": {"labels": {"pod-template-hash": hash}, "ownerReferences": [{"apiVersion": "apps/v1",
            "kind": "ReplicaSet", "name": name, "uid": format!("uid-{name}"), "controller": true}]}})
    }

    /// The replicas of the target, as webhook and controller read them.
    fn replicas(&self) -> Option<i32> {
        let replicas = spread::replicas(&self.typed().spec, &self.workload, &self.listed);
        replicas.unwrap()
    }

    /// A new pod passes the webhook, which chooses its subset and records it. Returns the subset; none if no subset
    /// took it.
    pub(crate) fn create(&mut self, name: &str, change: &Value) -> Option<String> {
        let matched = self.admit(name, change)?;
        self.arrive(name, Some(&matched), change);
        Some(matched.subset)
    }

    /// The webhook's half of [`Self::create`]: the pod does not exist yet.
    pub(crate) fn admit(&mut self, name: &str, change: &Value) -> Option<Matched> {
        let hash = change
            .pointer("/metadata/labels/pod-template-hash")
            .and_then(Value::as_str);
        let new = NewPod {
            name,
            uid: "request",
            version: hash.unwrap_or(IGNORED),
        };
        match spread::assign(&self.typed(), &new, self.replicas(), self.now).unwrap() {
            Choice::Nothing => None,
            Choice::Free(matched) => Some(matched),
            Choice::Counted(matched, status) => {
                self.record(&status);
                Some(matched)
            }
        }
    }

    /// The server's half of it.
    pub(crate) fn arrive(&mut self, name: &str, matched: Option<&Matched>, change: &Value) {
        self.pod(name, change);
        if let Some(matched) = matched {
            let annotation = serde_json::to_string(matched).unwrap();
            let annotated = json!({"metadata": {"annotations": {MATCHED: annotation}}});
            merge(self.pods.get_mut(name).unwrap(), &annotated);
        }
    }

    /// The deletion of a pod passes the webhook.
    pub(crate) fn delete(&mut self, name: &str) {
        let pod: Arc<PodView> = decode(&self.pods[name]);
        if !pod.is_active() {
            return;
        }
        let kind = pod.controller.as_ref().map_or("", |owner| &owner.kind);
        let version = spread::version(&pod.labels, kind);
        let going = GoingPod {
            name,
            version: &version,
            created: pod.created,
        };
        let Some(matched) = spread::matched(&pod.annotations) else {
            return;
        };
        if let Some(status) = spread::delete(&self.typed(), &going, &matched, self.replicas(), self.now) {
            self.record(&status);
        }
    }

    pub(crate) fn edit_pod(&mut self, name: &str, change: &Value) {
        let version = self.bump();
        let pod = self.pods.get_mut(name).unwrap();
        merge(pod, change);
        pod["metadata"]["resourceVersion"] = version;
    }

    /// A pod runs on a node, and is Ready.
    pub(crate) fn run(&mut self, name: &str, node: &str) {
        let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": text(self.now)});
        let change =
            json!({"spec": {"nodeName": node}, "status": {"phase": "Running", "conditions": [ready]}});
        self.edit_pod(name, &change);
    }

    /// The scheduler finds no node for a pod.
    pub(crate) fn unschedulable(&mut self, name: &str) {
        let no = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"});
        self.edit_pod(name, &json!({"status": {"conditions": [no]}}));
    }

    pub(crate) fn cost(&self, name: &str) -> &str {
        self.pods[name]["metadata"]["annotations"][COST]
            .as_str()
            .unwrap_or("none")
    }

    /// The subset in the annotation of a pod.
    pub(crate) fn subset_of(&self, name: &str) -> Option<String> {
        let pod: Arc<PodView> = decode(&self.pods[name]);
        Some(spread::matched(&pod.annotations)?.subset)
    }

    /// `name replicas/missing` of each subset, and `+creating -deleting` where there are some.
    pub(crate) fn counts(&self) -> String {
        line(&self.typed().status.subset_statuses)
    }

    /// As [`Self::counts`], of a version.
    pub(crate) fn counts_of(&self, version: &str) -> Option<String> {
        let status = self.typed().status;
        status
            .versioned_subset_statuses
            .get(version)
            .map(|list| line(list))
    }

    /// `subset status reason` of each condition.
    pub(crate) fn conditions(&self) -> String {
        let status = self.typed().status;
        let subsets = status.subset_statuses.iter();
        let all = subsets.flat_map(|one| one.conditions.iter().map(move |condition| (one, condition)));
        let lines =
            all.map(|(one, condition)| format!("{} {} {}", one.name, condition.status, condition.reason));
        lines.collect::<Vec<_>>().join(", ")
    }

    /// The plan, once it needs nothing more to be read.
    pub(crate) fn plan(&mut self, explain: Explain) -> Plan {
        let spread = self.typed();
        let mut view = WorkloadView::clone(&decode::<WorkloadView>(&self.workload));
        if !self.listed.is_empty() || spread.spec.target_filter.is_some() {
            view.numbers = Some(Arc::new(numbers_of(&self.workload)));
        }
        let target = self.known.clone().unwrap_or_else(|| Known::Found(Arc::new(view)));
        let pods: Vec<Arc<PodView>> = self.pods.values().map(decode).collect();
        let replica_sets: Vec<Arc<WorkloadView>> = self.replica_sets.values().map(decode).collect();
        let mut reads = 0;
        let read = |need: &Need| {
            reads += 1;
            let name = need.target().name;
            if self.hides.contains(&name) {
                return Err("timeout".to_owned());
            }
            Ok(self.pods.get(&name).cloned())
        };
        let mut memory = self.memory.clone();
        let plan = planned(&mut memory, self.now, read, |memory| {
            let snapshot = Snapshot {
                spread: &spread,
                target: &target,
                replica_sets: &replica_sets,
                pods: &pods,
                nodes: &Listed(&self.nodes),
                listed: &self.listed,
                before: &self.before,
                memory,
                explain,
            };
            reads_first(plan(&snapshot, self.now))
        });
        self.reads += reads;
        self.memory.unread = memory.unread;
        plan
    }

    /// Another number if anything is different that the controller reads.
    fn state(&self) -> u64 {
        let known = self.known.as_ref().map(std::mem::discriminant);
        let objects = (&self.spread, &self.workload, &self.replica_sets, &self.pods);
        fingerprint(&(objects, &self.nodes, self.listed.len(), &self.before, known))
    }

    /// Carries a plan out. Returns whether anything was done.
    pub(crate) fn execute(&mut self, plan: Plan) -> bool {
        self.memory.count(plan.attempts, self.now);
        let events = plan.events.iter();
        self.events
            .extend(events.map(|event| format!("{}: {}", event.reason, event.message)));
        let done = plan.status.is_some() || !plan.writes.is_empty();
        for object in plan.writes {
            for step in object.steps {
                self.apply(&step.write);
            }
        }
        if let Some(status) = plan.status {
            // A record of the webhook that was made meanwhile refuses it.
            if self.spread["metadata"]["resourceVersion"] == *status.version {
                let version = self.bump();
                let before = self.spread["status"].clone();
                merge(&mut self.spread, &status.patch);
                assert_ne!(before, self.spread["status"], "a status patch changes something");
                self.spread["metadata"]["resourceVersion"] = version;
                self.reports.push(status.patch);
            }
        }
        done
    }

    fn apply(&mut self, write: &Write) {
        let target = write.target();
        assert_eq!((target.resource, &*target.namespace), (ResourceId::PODS, "shop"));
        let name = &target.name;
        if self.refuses.contains(name) {
            return self.written.push(format!("refused {name}"));
        }
        let version = self.bump();
        match write {
            Write::Patch {
                part,
                patch: change,
                precondition,
                ..
            } => {
                let stored = self.pods.get_mut(name).unwrap();
                patch(stored, (*part, change, precondition), &mut None, version).unwrap();
            }
            Write::Delete { precondition, .. } => {
                may_delete(&self.pods[name], precondition).unwrap();
                self.delete(name);
                self.pods.remove(name);
            }
            Write::Create { .. } => panic!("nothing is created"),
        }
        self.written.push(format!("{} {name}", write.intent().as_str()));
    }

    /// The controller runs until nothing is due.
    pub(crate) fn settle(&mut self) {
        for _ in 0..20 {
            let state = self.state();
            if !self.agenda.is_due(&(), state, self.now) {
                return;
            }
            let plan = self.plan(Explain::No);
            self.agenda.note((), state, self.now, &plan);
            self.execute(plan);
        }
        panic!("the controller never rests: {:?}", self.written);
    }

    /// Lines of the explanation that are about a pod, or the whole if it is empty.
    pub(crate) fn why(&mut self, about: &str) -> String {
        let plan = self.plan(Explain::Yes);
        let lines = plan.why.into_iter().filter(|why| why.about == about);
        lines.map(|why| why.text).collect::<Vec<_>>().join("; ")
    }
}

fn template(image: &str, hash: Option<&str>) -> Value {
    let mut template = json!({"metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": image}]}});
    if let Some(hash) = hash {
        template["metadata"]["labels"]["pod-template-hash"] = json!(hash);
    }
    template
}

fn line(subsets: &[kruise_api::workloadspread::SubsetStatus]) -> String {
    let texts = subsets.iter().map(|one| {
        let mut text = format!("{} {}/{}", one.name, one.replicas, one.missing_replicas);
        for (sign, entries) in [("+", &one.creating_pods), ("-", &one.deleting_pods)] {
            for name in entries.0.keys() {
                text = format!("{text} {sign}{name}");
            }
        }
        text
    });
    texts.collect::<Vec<_>>().join(", ")
}

struct Listed<'a>(&'a BTreeMap<String, Value>);

impl Nodes for Listed<'_> {
    fn get(&self, name: &str) -> Option<Arc<NodeView>> {
        self.0.get(name).map(decode)
    }
}
