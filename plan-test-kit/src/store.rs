//! Objects of any kind as a server stores them, and a controller's writes to them.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use kruise_plan_kit::{Memory, Need, Plan, ResourceId, StatusPatch, Target, Write};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{Refused, create, decode, may_delete, merge, patch, text};

/// An object by resource, namespace and name.
pub type Key = (ResourceId, String, String);

/// The key of what a write is about.
pub fn key_of(target: &Target) -> Key {
    (target.resource, target.namespace.clone(), target.name.clone())
}

/// Everything that exists.
#[derive(Clone, Debug)]
pub struct Store {
    /// The time.
    pub now: Timestamp,
    objects: BTreeMap<Key, Value>,
    version: u64,
}

impl Store {
    /// Nothing, at this time.
    pub fn new(now: &str) -> Self {
        Self {
            now: now.parse().unwrap(),
            objects: BTreeMap::new(),
            version: 1,
        }
    }

    /// Lets the clock run.
    pub fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// A number that grows with each change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The version of the next change.
    pub fn next_version(&mut self) -> Value {
        self.version += 1;
        json!(self.version.to_string())
    }

    /// Stores an object as it is, with a uid and a version if it has none.
    pub fn put(&mut self, resource: ResourceId, mut object: Value) {
        let version = self.next_version();
        let metadata = &mut object["metadata"];
        let member = |name: &str| metadata[name].as_str().unwrap_or_default().to_owned();
        let key = (resource, member("namespace"), member("name"));
        if metadata["uid"].is_null() {
            metadata["uid"] = json!(format!("uid-{}", self.version));
        }
        if metadata["resourceVersion"].is_null() {
            metadata["resourceVersion"] = version;
        }
        self.objects.insert(key, object);
    }

    /// An object, if there is one.
    pub fn get(&self, resource: ResourceId, namespace: &str, name: &str) -> Option<&Value> {
        self.objects
            .get(&(resource, namespace.to_owned(), name.to_owned()))
    }

    /// All objects of a resource, with their keys.
    pub fn of(&self, resource: ResourceId) -> impl Iterator<Item = (&Key, &Value)> {
        self.objects.iter().filter(move |((of, ..), _)| *of == resource)
    }

    /// All objects of a resource.
    pub fn all(&self, resource: ResourceId) -> impl Iterator<Item = &Value> {
        self.of(resource).map(|(_, object)| object)
    }

    /// Keys of all objects of a resource.
    pub fn keys(&self, resource: ResourceId) -> Vec<Key> {
        self.of(resource).map(|(key, _)| key.clone()).collect()
    }

    /// Names of all objects of a resource.
    pub fn names(&self, resource: ResourceId) -> Vec<String> {
        self.of(resource).map(|((.., name), _)| name.clone()).collect()
    }

    /// All objects of a resource in a namespace, as planners read them.
    pub fn views<T: DeserializeOwned>(&self, resource: ResourceId, namespace: &str) -> Vec<Arc<T>> {
        let here = self.of(resource).filter(|((_, of, _), _)| of == namespace);
        here.map(|(_, object)| decode(object)).collect()
    }

    /// Somebody changes an object. Another specification is another generation, if the object has one.
    ///
    /// # Panics
    /// If there is no such object.
    pub fn edit(&mut self, resource: ResourceId, namespace: &str, name: &str, change: &Value) {
        let version = self.next_version();
        let key = (resource, namespace.to_owned(), name.to_owned());
        let found = self.objects.get_mut(&key);
        let object = found.unwrap_or_else(|| panic!("there is a {key:?}"));
        let before = object["spec"].clone();
        merge(object, change);
        object["metadata"]["resourceVersion"] = version;
        grow(object, &before);
        // Pods that are being deleted stay until their node says so.
        if change["metadata"].get("finalizers").is_some() {
            self.collect(&key);
        }
    }

    /// What the server makes of an object while it stores it.
    ///
    /// # Panics
    /// If there is no such object.
    pub fn amend(&mut self, key: &Key, change: impl FnOnce(&mut Value)) {
        let found = self.objects.get_mut(key);
        change(found.unwrap_or_else(|| panic!("there is a {key:?}")));
    }

    /// Somebody deletes an object: it stays while it has finalizers. What all owners of are gone is deleted, too.
    pub fn delete(&mut self, resource: ResourceId, namespace: &str, name: &str) {
        let deleted = json!({"metadata": {"deletionTimestamp": text(self.now)}});
        self.edit(resource, namespace, name, &deleted);
        self.collect(&(resource, namespace.to_owned(), name.to_owned()));
    }

    /// Objects that these are not true of are gone, whatever holds them.
    pub fn retain(&mut self, stays: impl FnMut(&Key, &mut Value) -> bool) {
        self.version += 1;
        self.objects.retain(stays);
    }

    /// An object that is being deleted goes once nothing holds it, and what it owned follows.
    fn collect(&mut self, key: &Key) {
        let Some(object) = self.objects.get(key) else {
            return;
        };
        let metadata = &object["metadata"];
        let holds = metadata["finalizers"].as_array();
        if metadata["deletionTimestamp"].is_null() || holds.is_some_and(|list| !list.is_empty()) {
            return;
        }
        let uid = metadata["uid"].clone();
        self.objects.remove(key);
        let is_orphan = |object: &Value| {
            let owners = object["metadata"]["ownerReferences"].as_array();
            owners.is_some_and(|owners| !owners.is_empty() && owners.iter().all(|owner| owner["uid"] == uid))
        };
        let orphans = self.objects.iter().filter(|(_, object)| is_orphan(object));
        let orphans: Vec<Key> = orphans.map(|(key, _)| key.clone()).collect();
        for (resource, namespace, name) in orphans {
            self.delete(resource, &namespace, &name);
        }
    }

    /// Carries one write out. `previous` is the version that the last write of the same object returned, and
    /// becomes that of this one.
    ///
    /// # Errors
    /// If the server refuses it.
    pub fn apply(&mut self, write: &Write, previous: &mut Option<String>) -> Result<(), Refused> {
        let key = key_of(write.target());
        let version = json!((self.version + 1).to_string());
        match write {
            Write::Create { target, body, .. } => {
                if self.objects.contains_key(&key) {
                    return Err(Refused::AlreadyExists);
                }
                let uid = format!("uid-{}", self.version + 1);
                let object = create(body.render(), &target.name, &uid, version, &text(self.now));
                *previous = object["metadata"]["resourceVersion"].as_str().map(str::to_owned);
                self.objects.insert(key, object);
            }
            Write::Patch {
                part,
                patch: change,
                precondition,
                ..
            } => {
                let stored = self.objects.get_mut(&key).ok_or(Refused::NotFound)?;
                let before = stored["spec"].clone();
                patch(stored, (*part, change, precondition), previous, version)?;
                grow(stored, &before);
                self.collect(&key);
            }
            Write::Delete { precondition, .. } => {
                may_delete(self.objects.get(&key).ok_or(Refused::NotFound)?, precondition)?;
                let (resource, namespace, name) = key;
                self.delete(resource, &namespace, &name);
            }
        }
        self.version += 1;
        Ok(())
    }

    /// Writes a status, unless the object has changed since it was read. Returns whether it was written.
    ///
    /// # Panics
    /// If the patch changes nothing.
    pub fn report(&mut self, status: &StatusPatch) -> bool {
        let key = key_of(&status.target);
        let found = self.objects.get_mut(&key);
        let Some(stored) = found.filter(|stored| stored["metadata"]["resourceVersion"] == *status.version)
        else {
            return false;
        };
        let before = stored.clone();
        merge(stored, &status.patch);
        assert_ne!(before, *stored, "a status patch changes something");
        self.version += 1;
        stored["metadata"]["resourceVersion"] = json!(self.version.to_string());
        true
    }
}

/// Another specification is another generation.
fn grow(object: &mut Value, before: &Value) {
    let generation = object["metadata"]["generation"].as_i64();
    if let Some(generation) = generation.filter(|_| object["spec"] != *before) {
        object["metadata"]["generation"] = json!(generation + 1);
    }
}

/// A plan that, if it needs to read, does nothing else.
///
/// # Panics
/// If it does.
pub fn reads_first(plan: Plan) -> Plan {
    let is_idle = plan.writes.is_empty() && plan.status.is_none();
    assert!(
        plan.needs.is_empty() || is_idle,
        "a plan writes before it has read"
    );
    plan
}

/// Plans until the plan needs nothing more to be read; an object that cannot be read has an error, which is remembered.
///
/// # Panics
/// If a plan asks again and again.
pub fn planned(
    memory: &mut Memory,
    now: Timestamp,
    mut read: impl FnMut(&Need) -> Result<Option<Value>, String>,
    plan: impl Fn(&Memory) -> Plan,
) -> Plan {
    let mut reading = memory.clone();
    for _ in 0..3 {
        let planned = plan(&reading);
        if planned.needs.is_empty() {
            memory.unread = reading.unread;
            return planned;
        }
        for need in planned.needs {
            let object = read(&need);
            reading.note(need, object, now);
        }
    }
    panic!("a plan asks again and again");
}
