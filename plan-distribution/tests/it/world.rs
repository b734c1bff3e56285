//! Namespaces, ResourceDistributions and objects with the names of their copies, and a server that carries plans out.

use std::{
    cell::Cell,
    collections::BTreeMap,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use kruise_api::resourcedistribution::ResourceDistribution;
use kruise_plan_distribution::resourcedistribution::{Copies, Snapshot, plan};
use kruise_plan_kit::{Attempts, Explain, FailedCopy, Memory, Need, Plan, Precondition, ResourceId, Write};
use kruise_plan_test_kit::{Agenda, Store, decode, key_of, merge, planned, reads_first};
use kruise_views::{MetadataView, NamespaceView};
use serde_json::{Value, json};

pub(crate) const API_VERSION: &str = "apps.kruise.io/v1beta1";
const DISTRIBUTIONS: ResourceId = kruise_api::resourcedistribution::RESOURCE;

#[derive(Clone)]
pub(crate) struct World {
    store: Store,
    agenda: Agenda<String>,
    memory: BTreeMap<String, Memory>,
    /// Writes of copies that were carried out: `verb namespace/name`.
    pub(crate) written: Vec<String>,
    /// Status writes that were carried out.
    pub(crate) reports: usize,
    /// Events of the plans that were carried out: `Reason: message`.
    pub(crate) events: Vec<String>,
    /// Namespaces where the server refuses writes, and why.
    pub(crate) refuses: BTreeMap<String, String>,
    /// Namespaces whose objects cannot be read, and why.
    pub(crate) hides: BTreeMap<String, String>,
    /// Copies that plans have read.
    pub(crate) reads: Cell<usize>,
}

impl Deref for World {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut Store {
        &mut self.store
    }
}

impl World {
    /// With these namespaces, each of which may have a label: `name` or `name team`.
    pub(crate) fn new(namespaces: &[&str]) -> Self {
        let mut world = Self {
            store: Store::new("2026-01-01T01:00:00Z"),
            agenda: Agenda::default(),
            memory: BTreeMap::new(),
            written: Vec::new(),
            reports: 0,
            events: Vec::new(),
            refuses: BTreeMap::new(),
            hides: BTreeMap::new(),
            reads: Cell::new(0),
        };
        for namespace in namespaces {
            let (name, team) = namespace.split_once(' ').unwrap_or((namespace, ""));
            world.namespace(name, team);
        }
        world
    }

    /// Creates a namespace, or gives it another team.
    pub(crate) fn namespace(&mut self, name: &str, team: &str) {
        if self.store.get(ResourceId::NAMESPACES, "", name).is_some() {
            let change = json!({"metadata": {"labels": {"team": team}}});
            return self.edit(ResourceId::NAMESPACES, "", name, &change);
        }
        let labels = json!({"kubernetes.io/metadata.name": name, "team": team});
        self.put(
            ResourceId::NAMESPACES,
            json!({"metadata": {"name": name, "labels": labels}}),
        );
    }

    /// A namespace begins to be deleted.
    pub(crate) fn terminate(&mut self, name: &str) {
        let held = json!({"metadata": {"finalizers": ["kubernetes"]}});
        self.edit(ResourceId::NAMESPACES, "", name, &held);
        self.store.delete(ResourceId::NAMESPACES, "", name);
    }

    /// A namespace goes, with all that is in it.
    pub(crate) fn remove_namespace(&mut self, name: &str) {
        self.store.retain(|(resource, namespace, own), _| {
            namespace != name && !(*resource == ResourceId::NAMESPACES && own == name)
        });
    }

    /// A ResourceDistribution of a Secret `reg`, or with another manifest.
    pub(crate) fn distribute(&mut self, name: &str, resource: &Value, targets: &Value) {
        let mut manifest = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "reg"},
            "type": "Opaque", "data": {"token": "dG9rZW4="}});
        merge(&mut manifest, resource);
        self.put(
            DISTRIBUTIONS,
            json!({"apiVersion": API_VERSION, "kind": "ResourceDistribution",
                "metadata": {"name": name, "generation": 1}, "spec": {"resource": manifest, "targets": targets}}),
        );
    }

    /// The author changes a ResourceDistribution.
    pub(crate) fn change(&mut self, name: &str, change: &Value) {
        self.edit(DISTRIBUTIONS, "", name, change);
    }

    /// A ResourceDistribution is deleted, and the garbage collector follows.
    pub(crate) fn withdraw(&mut self, name: &str) {
        let released = json!({"metadata": {"finalizers": null}});
        self.edit(DISTRIBUTIONS, "", name, &released);
        if self.store.get(DISTRIBUTIONS, "", name).is_some() {
            self.store.delete(DISTRIBUTIONS, "", name);
        }
        self.memory.remove(name);
    }

    /// The Secret `reg` of a namespace; null if there is none.
    pub(crate) fn copy(&self, namespace: &str) -> &Value {
        self.store
            .get(ResourceId::SECRETS, namespace, "reg")
            .unwrap_or(&Value::Null)
    }

    /// The namespaces with a Secret `reg` of this controller.
    pub(crate) fn copied(&self, name: &str) -> String {
        let uid = &self.store.get(DISTRIBUTIONS, "", name).unwrap()["metadata"]["uid"];
        let is_controlled = |object: &Value| {
            let owners = object["metadata"]["ownerReferences"].as_array();
            let mut owners = owners.into_iter().flatten();
            owners.any(|owner| owner["uid"] == *uid && owner["controller"] == true)
        };
        let copies = self.of(ResourceId::SECRETS);
        let copies = copies.filter(|((.., name), object)| name == "reg" && is_controlled(object));
        let names: Vec<&str> = copies.map(|((_, namespace, _), _)| &**namespace).collect();
        names.join(" ")
    }

    pub(crate) fn status(&self, name: &str) -> &Value {
        &self.store.get(DISTRIBUTIONS, "", name).unwrap()["status"]
    }

    /// `desired succeeded failed`, and the conditions that are True with their namespaces.
    pub(crate) fn report(&self, name: &str) -> String {
        let status = self.status(name);
        let count = |member: &str| status[member].as_i64().unwrap_or(0);
        let mut line = format!("{} {} {}", count("desired"), count("succeeded"), count("failed"));
        let conditions = status["conditions"].as_array().unwrap();
        assert_eq!(conditions.len(), 6);
        for condition in conditions {
            let namespaces = condition["failedNamespaces"].as_array().into_iter().flatten();
            let namespaces: Vec<&str> = namespaces.map(|name| name.as_str().unwrap()).collect();
            if condition["status"] == "True" {
                let kind = condition["type"].as_str().unwrap();
                line = format!("{line}, {kind}: {}", namespaces.join(" "));
            } else {
                assert_eq!((&condition["reason"], namespaces.len()), (&json!("Succeeded"), 0));
            }
        }
        line
    }

    /// Reason of a condition.
    pub(crate) fn reason(&self, name: &str, kind: &str) -> &str {
        let conditions = self.status(name)["conditions"].as_array().unwrap();
        let condition = conditions.iter().find(|condition| condition["type"] == kind);
        condition.unwrap()["reason"].as_str().unwrap()
    }

    /// The plan, once it needs nothing more to be read.
    pub(crate) fn plan(&mut self, name: &str, explain: Explain) -> Plan {
        let object = self.store.get(DISTRIBUTIONS, "", name).unwrap();
        let distribution = ResourceDistribution::from_value(object.clone()).unwrap();
        let namespaces: Vec<Arc<NamespaceView>> = self.views(ResourceId::NAMESPACES, "");
        let mut memory = self.memory.get(name).cloned().unwrap_or_default();
        let read = |need: &Need| {
            let target = need.target();
            self.reads.set(self.reads.get() + 1);
            if let Some(error) = self.hides.get(&target.namespace) {
                return Err(error.clone());
            }
            let found = self.store.get(target.resource, &target.namespace, &target.name);
            Ok(found.cloned())
        };
        let planned = planned(&mut memory, self.now, read, |memory| {
            let snapshot = Snapshot {
                distribution: &distribution,
                api_version: API_VERSION,
                namespaces: &namespaces,
                copies: self,
                memory,
                explain,
            };
            reads_first(plan(&snapshot, self.now))
        });
        self.memory.entry(name.to_owned()).or_default().unread = memory.unread;
        planned
    }

    /// The manager restarts: what it knew is gone.
    pub(crate) fn restart(&mut self) {
        self.memory.clear();
        self.agenda.clear();
    }

    /// Carries a plan out.
    pub(crate) fn execute(&mut self, name: &str, plan: Plan) -> bool {
        let again = plan.requeue.is_some_and(|after| after.is_zero());
        let is_busy = again || plan.status.is_some() || !plan.writes.is_empty();
        self.events.extend(
            plan.events
                .iter()
                .map(|event| format!("{}: {}", event.reason, event.message)),
        );
        let mut memory = self.memory.remove(name).unwrap_or_default();
        memory.count(plan.attempts, self.now);
        memory.known = plan.known.unwrap_or_default();
        let failed_before = memory.failed_copies.clone();
        if let Some(status) = &plan.status {
            self.reports += usize::from(self.store.report(status));
        }
        for object in plan.writes {
            let [step] = &object.steps[..] else {
                panic!("one write for a copy")
            };
            let target = step.write.target().clone();
            let before = memory.failed_copies.remove(&target);
            match self.carry_out(&step.write) {
                Ok(version) => {
                    let version = version.map(|version| (target, version));
                    memory.known.versions.extend(version);
                    let done = step.done.iter();
                    self.events
                        .extend(done.map(|event| format!("{}: {}", event.reason, event.message)));
                }
                Err(message) => {
                    let note = step.failed.as_ref().unwrap();
                    self.events
                        .push(format!("{}: {}{message}", note.reason, note.prefix));
                    let version = match step.write.precondition() {
                        Some(Precondition::UidAndVersion(_, version)) => Some(version.clone()),
                        _ => None,
                    };
                    let failed = FailedCopy {
                        intent: step.write.intent(),
                        message,
                        digest: memory.known.digest.clone(),
                        version,
                        attempts: Attempts::and_now(before.map(|before| before.attempts), self.now),
                    };
                    memory.failed_copies.insert(target, failed);
                }
            }
        }
        if memory.failed_copies != failed_before {
            // The next plan reports it.
            self.agenda.forget(&name.to_owned());
        }
        self.memory.insert(name.to_owned(), memory);
        is_busy
    }

    /// Carries one write out. Returns the version of what was written.
    fn carry_out(&mut self, write: &Write) -> Result<Option<String>, String> {
        let target = write.target();
        if let Some(message) = self.refuses.get(&target.namespace) {
            return Err(message.clone());
        }
        let key = key_of(target);
        let found = |store: &Store| store.get(key.0, &key.1, &key.2).cloned();
        let (mut store, mut version) = (self.store.clone(), None);
        store
            .apply(write, &mut version)
            .map_err(|refused| format!("{refused:?}"))?;
        match (found(&self.store), found(&store)) {
            (None, Some(copy)) => {
                let namespace = store.get(ResourceId::NAMESPACES, "", &target.namespace);
                assert!(namespace.is_some(), "{write} into no namespace");
                assert_eq!(copy["metadata"]["namespace"], *target.namespace);
                store.amend(&key, as_stored);
            }
            (Some(stored), Some(changed)) => {
                assert_ne!(changed, stored, "{write} changes something");
                if changed["type"] != stored["type"] {
                    return Err("type: Invalid value: field is immutable".into());
                }
                let is_same = changed["data"] == stored["data"] && changed["immutable"] == true;
                if stored["immutable"] == true && !is_same {
                    return Err("data: Forbidden: field is immutable when `immutable` is set".into());
                }
            }
            (_, None) => {}
        }
        self.store = store;
        let line = format!("{} {}/{}", write.intent().as_str(), target.namespace, target.name);
        self.written.push(line);
        Ok(version)
    }

    /// The controller runs until nothing is due.
    pub(crate) fn settle(&mut self) {
        for _ in 0..100 {
            let is_due = |name: &String| self.agenda.is_due(name, self.store.version(), self.now);
            let due: Vec<String> = self.distributions().into_iter().filter(is_due).collect();
            if due.is_empty() {
                return;
            }
            for name in due {
                let (version, plan) = (self.store.version(), self.plan(&name, Explain::No));
                self.agenda.note(name.clone(), version, self.store.now, &plan);
                self.execute(&name, plan);
            }
        }
        panic!("the controller never rests: {:?}", self.written);
    }

    pub(crate) fn distributions(&self) -> Vec<String> {
        self.names(DISTRIBUTIONS)
    }

    /// The writes since it was last asked.
    pub(crate) fn writes(&mut self) -> Vec<String> {
        let mut writes = std::mem::take(&mut self.written);
        writes.sort();
        writes
    }
}

/// What the API server makes of a Secret.
fn as_stored(object: &mut Value) {
    if object["kind"] != "Secret" {
        return;
    }
    let members = object.as_object_mut().unwrap();
    let texts = members.remove("stringData");
    if members.get("type").is_none_or(|kind| kind == "") {
        members.insert("type".into(), json!("Opaque"));
    }
    for (key, text) in texts.as_ref().and_then(Value::as_object).into_iter().flatten() {
        object["data"][key] = json!(STANDARD.encode(text.as_str().unwrap()));
    }
}

impl Copies for World {
    fn get(&self, resource: ResourceId, namespace: &str, name: &str) -> Option<Arc<MetadataView>> {
        let object = self.store.get(resource, namespace, name)?;
        Some(decode(&json!({"metadata": object["metadata"]})))
    }
}
