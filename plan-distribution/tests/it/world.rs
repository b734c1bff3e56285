//! Namespaces, ResourceDistributions and objects with the names of their copies, and a server that carries plans out.

use std::{cell::Cell, collections::BTreeMap, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::{SignedDuration, Timestamp};
use kruise_api::resourcedistribution::ResourceDistribution;
use kruise_plan_distribution::resourcedistribution::{Copies, Snapshot, plan};
use kruise_plan_kit::{Attempts, Explain, FailedCopy, Memory, Plan, Precondition, ResourceId, Target, Write};
use kruise_plan_test_kit::{Refused, create, may_delete, merge, patch, text};
use kruise_views::{MetadataView, NamespaceView};
use serde_json::{Value, json};

pub(crate) const API_VERSION: &str = "apps.kruise.io/v1beta1";
const DISTRIBUTIONS: ResourceId = ResourceId::RESOURCE_DISTRIBUTIONS;

/// An object by resource, namespace and name.
type Key = (ResourceId, String, String);

#[derive(Clone)]
pub(crate) struct World {
    pub(crate) now: Timestamp,
    objects: BTreeMap<Key, Value>,
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
    version: u64,
}

impl World {
    /// With these namespaces, each of which may have a label: `name` or `name team`.
    pub(crate) fn new(namespaces: &[&str]) -> Self {
        let mut world = Self {
            now: "2026-01-01T01:00:00Z".parse().unwrap(),
            objects: BTreeMap::new(),
            memory: BTreeMap::new(),
            written: Vec::new(),
            reports: 0,
            events: Vec::new(),
            refuses: BTreeMap::new(),
            hides: BTreeMap::new(),
            reads: Cell::new(0),
            version: 1,
        };
        for namespace in namespaces {
            let (name, team) = namespace.split_once(' ').unwrap_or((namespace, ""));
            world.namespace(name, team);
        }
        world
    }

    pub(crate) fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    fn bump(&mut self) -> Value {
        self.version += 1;
        json!(self.version.to_string())
    }

    /// Stores an object, with a uid and a version of its own if it has none.
    pub(crate) fn store(&mut self, resource: ResourceId, mut object: Value) {
        let version = self.bump();
        let metadata = &mut object["metadata"];
        for (member, value) in [
            ("uid", json!(format!("uid-{}", self.version))),
            ("resourceVersion", version),
        ] {
            if metadata[member].is_null() {
                metadata[member] = value;
            }
        }
        let member = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
        let key = (resource, member("namespace"), member("name"));
        self.objects.insert(key, object);
    }

    /// Creates a namespace, or gives it another team.
    pub(crate) fn namespace(&mut self, name: &str, team: &str) {
        if let Some(stored) = self.get(ResourceId::NAMESPACES, "", name).cloned() {
            let mut changed = stored;
            changed["metadata"]["labels"]["team"] = json!(team);
            changed["metadata"]["resourceVersion"] = Value::Null;
            return self.store(ResourceId::NAMESPACES, changed);
        }
        let labels = json!({"kubernetes.io/metadata.name": name, "team": team});
        self.store(
            ResourceId::NAMESPACES,
            json!({"metadata": {"name": name, "labels": labels}}),
        );
    }

    /// A namespace begins to be deleted.
    pub(crate) fn terminate(&mut self, name: &str) {
        let key = (ResourceId::NAMESPACES, String::new(), name.to_owned());
        self.objects.get_mut(&key).unwrap()["metadata"]["deletionTimestamp"] = json!(text(self.now));
    }

    /// A namespace goes, with all that is in it.
    pub(crate) fn remove_namespace(&mut self, name: &str) {
        self.objects.retain(|(resource, namespace, own), _| {
            namespace != name && !(*resource == ResourceId::NAMESPACES && own == name)
        });
    }

    /// A ResourceDistribution of a Secret `reg`, or with another manifest.
    pub(crate) fn distribute(&mut self, name: &str, resource: &Value, targets: &Value) {
        let mut manifest = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "reg"},
            "type": "Opaque", "data": {"token": "dG9rZW4="}});
        merge(&mut manifest, resource);
        self.store(
            DISTRIBUTIONS,
            json!({"apiVersion": API_VERSION, "kind": "ResourceDistribution",
                "metadata": {"name": name, "generation": 1}, "spec": {"resource": manifest, "targets": targets}}),
        );
    }

    /// The author changes a ResourceDistribution.
    pub(crate) fn change(&mut self, name: &str, change: &Value) {
        let version = self.bump();
        let key = (DISTRIBUTIONS, String::new(), name.to_owned());
        let stored = self.objects.get_mut(&key).unwrap();
        let spec = stored["spec"].clone();
        merge(stored, change);
        stored["metadata"]["resourceVersion"] = version;
        if stored["spec"] != spec {
            let generation = stored["metadata"]["generation"].as_i64().unwrap_or(0);
            stored["metadata"]["generation"] = json!(generation + 1);
        }
    }

    /// A ResourceDistribution is deleted, and the garbage collector follows.
    pub(crate) fn withdraw(&mut self, name: &str) {
        let key = (DISTRIBUTIONS, String::new(), name.to_owned());
        let uid = self.objects.remove(&key).unwrap()["metadata"]["uid"].clone();
        self.memory.remove(name);
        let is_orphan = |object: &Value| {
            let owners = object["metadata"]["ownerReferences"]
                .as_array()
                .into_iter()
                .flatten();
            let owners: Vec<&Value> = owners.collect();
            !owners.is_empty() && owners.iter().all(|owner| owner["uid"] == uid)
        };
        self.objects.retain(|_, object| !is_orphan(object));
    }

    pub(crate) fn get(&self, resource: ResourceId, namespace: &str, name: &str) -> Option<&Value> {
        self.objects
            .get(&(resource, namespace.to_owned(), name.to_owned()))
    }

    /// The Secret `reg` of a namespace; null if there is none.
    pub(crate) fn copy(&self, namespace: &str) -> &Value {
        self.get(ResourceId::SECRETS, namespace, "reg")
            .unwrap_or(&Value::Null)
    }

    /// The namespaces with a Secret `reg` of this controller.
    pub(crate) fn copied(&self, name: &str) -> String {
        let uid = &self.get(DISTRIBUTIONS, "", name).unwrap()["metadata"]["uid"];
        let of = |((resource, _, name), object): &(&Key, &Value)| {
            *resource == ResourceId::SECRETS
                && name == "reg"
                && object["metadata"]["ownerReferences"]
                    .as_array()
                    .is_some_and(|owners| {
                        owners
                            .iter()
                            .any(|owner| owner["uid"] == *uid && owner["controller"] == true)
                    })
        };
        let names: Vec<&str> = self
            .objects
            .iter()
            .filter(of)
            .map(|((_, namespace, _), _)| &**namespace)
            .collect();
        names.join(" ")
    }

    /// Somebody changes an object.
    pub(crate) fn edit(&mut self, resource: ResourceId, namespace: &str, name: &str, change: &Value) {
        let version = self.bump();
        let key = (resource, namespace.to_owned(), name.to_owned());
        let object = self
            .objects
            .get_mut(&key)
            .unwrap_or_else(|| panic!("there is a {key:?}"));
        merge(object, change);
        object["metadata"]["resourceVersion"] = version;
    }

    /// Somebody deletes an object.
    pub(crate) fn delete(&mut self, resource: ResourceId, namespace: &str, name: &str) {
        let key = (resource, namespace.to_owned(), name.to_owned());
        self.objects
            .remove(&key)
            .unwrap_or_else(|| panic!("there is a {key:?}"));
    }

    pub(crate) fn status(&self, name: &str) -> &Value {
        &self.get(DISTRIBUTIONS, "", name).unwrap()["status"]
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
        let object = self.get(DISTRIBUTIONS, "", name).unwrap();
        let distribution = ResourceDistribution::from_value(object.clone()).unwrap();
        let of = |((resource, ..), _): &(&Key, &Value)| *resource == ResourceId::NAMESPACES;
        let namespaces = self.objects.iter().filter(of);
        let namespaces: Vec<Arc<NamespaceView>> = namespaces.map(|(_, object)| decode(object)).collect();
        let mut memory = self.memory.get(name).cloned().unwrap_or_default();
        for _ in 0..3 {
            let snapshot = Snapshot {
                distribution: &distribution,
                api_version: API_VERSION,
                namespaces: &namespaces,
                copies: self,
                memory: &memory,
                explain,
            };
            let planned = plan(&snapshot, self.now);
            if planned.needs.is_empty() {
                let known = self.memory.entry(name.to_owned()).or_default();
                known.unread = memory.unread;
                return planned;
            }
            assert!(planned.writes.is_empty() && planned.status.is_none());
            for need in planned.needs {
                let target = need.target();
                self.reads.set(self.reads.get() + 1);
                let object = self.get(target.resource, &target.namespace, &target.name);
                let hidden = self.hides.get(&target.namespace);
                memory.note(
                    need,
                    hidden.map_or_else(|| Ok(object.cloned()), |error| Err(error.clone())),
                    self.now,
                );
            }
        }
        panic!("a plan asks again and again");
    }

    /// The manager restarts: what it knew is gone.
    pub(crate) fn restart(&mut self) {
        self.memory.clear();
    }

    /// Carries a plan out. Returns whether anything was tried, or is to be planned again at once.
    pub(crate) fn execute(&mut self, name: &str, plan: Plan) -> bool {
        self.events.extend(
            plan.events
                .iter()
                .map(|event| format!("{}: {}", event.reason, event.message)),
        );
        let mut memory = self.memory.remove(name).unwrap_or_default();
        memory.count(plan.attempts, self.now);
        memory.known = plan.known.unwrap_or_default();
        let again = plan.requeue.is_some_and(|after| after.is_zero());
        let reported = plan.status.is_some();
        if let Some(status) = &plan.status {
            let version = self.bump();
            let object = self.objects.get_mut(&key(&status.target)).unwrap();
            merge(object, &status.patch);
            object["metadata"]["resourceVersion"] = version;
            self.reports += 1;
        }
        let tried = !plan.writes.is_empty();
        for object in plan.writes {
            let [step] = &object.steps[..] else {
                panic!("one write for a copy")
            };
            let target = step.write.target().clone();
            let before = memory.failed_copies.remove(&target);
            match self.apply(&step.write) {
                Ok(version) => {
                    memory
                        .known
                        .versions
                        .extend(version.map(|version| (target, version)));
                    self.events.extend(
                        step.done
                            .iter()
                            .map(|event| format!("{}: {}", event.reason, event.message)),
                    );
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
        self.memory.insert(name.to_owned(), memory);
        tried || reported || again
    }

    /// Carries one write out. Returns the version of what was written.
    fn apply(&mut self, write: &Write) -> Result<Option<String>, String> {
        let target = write.target();
        if let Some(message) = self.refuses.get(&target.namespace) {
            return Err(message.clone());
        }
        let key = key(target);
        let version = self.bump();
        match write {
            Write::Create { target, body, .. } => {
                assert!(!self.objects.contains_key(&key), "{write} of what exists");
                assert!(self.get(ResourceId::NAMESPACES, "", &target.namespace).is_some());
                let uid = format!("uid-{}", self.version);
                let body = body.render();
                assert_eq!(body["metadata"]["namespace"], *target.namespace);
                let mut object = create(body, &target.name, &uid, version, &text(self.now));
                as_stored(&mut object);
                self.objects.insert(key.clone(), object);
            }
            Write::Patch {
                part,
                patch: change,
                precondition,
                ..
            } => {
                let stored = self.objects.get_mut(&key).ok_or("not found")?;
                let mut changed = stored.clone();
                patch(&mut changed, (*part, change, precondition), &mut None, version)
                    .map_err(|refused| format!("{refused:?}"))?;
                if changed["type"] != stored["type"] {
                    return Err("type: Invalid value: field is immutable".into());
                }
                if stored["immutable"] == true
                    && (changed["data"] != stored["data"] || changed["immutable"] != true)
                {
                    return Err("data: Forbidden: field is immutable when `immutable` is set".into());
                }
                assert_ne!(changed, *stored, "{write} changes something");
                *stored = changed;
            }
            Write::Delete { precondition, .. } => {
                let stored = self.objects.get(&key).ok_or("not found")?;
                may_delete(stored, precondition).map_err(|refused: Refused| format!("{refused:?}"))?;
                self.objects.remove(&key);
            }
        }
        let line = format!("{} {}/{}", write.intent().as_str(), target.namespace, target.name);
        self.written.push(line);
        let stored = self.objects.get(&key);
        Ok(stored.map(|object| object["metadata"]["resourceVersion"].as_str().unwrap().to_owned()))
    }

    /// Runs the controller until it has nothing to do, or what it does is refused again and again.
    pub(crate) fn settle(&mut self) {
        for _ in 0..100 {
            let mut is_done = true;
            for name in self.distributions() {
                let before = (self.written.len(), self.reports);
                let plan = self.plan(&name, Explain::No);
                let again = self.execute(&name, plan);
                is_done &=
                    !again || (before == (self.written.len(), self.reports) && !self.refuses.is_empty());
            }
            if is_done {
                return;
            }
        }
        panic!("the controller never rests: {:?}", self.written);
    }

    pub(crate) fn distributions(&self) -> Vec<String> {
        let of = |((resource, ..), _): &(&Key, &Value)| *resource == DISTRIBUTIONS;
        self.objects
            .iter()
            .filter(of)
            .map(|((_, _, name), _)| name.clone())
            .collect()
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

fn decode<T: serde::de::DeserializeOwned>(object: &Value) -> Arc<T> {
    Arc::new(serde_json::from_str(&object.to_string()).unwrap())
}

fn key(target: &Target) -> Key {
    (target.resource, target.namespace.clone(), target.name.clone())
}

impl Copies for World {
    fn get(&self, resource: ResourceId, namespace: &str, name: &str) -> Option<Arc<MetadataView>> {
        let object = World::get(self, resource, namespace, name)?;
        Some(decode(&json!({"metadata": object["metadata"]})))
    }
}
