//! Stateful sets: pods with ordinals that keep their names and claims.
//!
//! Missing pods are created in order, condemned ones are deleted from the highest ordinal, and old ones are
//! replaced from the highest ordinal down to the partition, within `maxUnavailable`. With `OrderedReady` the next
//! step waits until all pods before are available. Old pods that are not available anyway are replaced beyond
//! `maxUnavailable`.
//!
//! Not there: adoption of pods, claims and revisions without an owner, repair of pods, collisions of revisions, events.

mod claims;
mod revisions;
mod set;
mod status;

use std::collections::BTreeSet;
use std::sync::Arc;

use go_compat::{IntOrString, Rounding};
use jiff::Timestamp;
use serde_json::{Value, json};

use self::revisions::Revisions;
use self::set::{REVISION, Set, is_leaving, revision};
use super::objects::{controlled, reference, release, selects};
use crate::api::Api;
use crate::object::{at, get_metadata, metadata_text};
use crate::store::Key;
use crate::world::{Actor, Client, Feed, Timers, pod_path};

const USER: &str = "system:serviceaccount:kube-system:statefulset-controller";

/// Runs stateful sets.
#[derive(Clone, Debug)]
pub(crate) struct StatefulSets {
    sets: Feed,
    pods: Feed,
    claims: Feed,
    /// Sets with pods that become available by waiting.
    timers: Timers<Key>,
    /// Sets with a pod that waits until an earlier claim of its is gone.
    waiting: BTreeSet<Key>,
}

/// Whether a pass may go on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    GoesOn,
    Ends,
}

impl StatefulSets {
    pub(crate) fn new() -> Self {
        Self {
            sets: Feed::new("apps", "statefulsets"),
            pods: Feed::new("", "pods"),
            claims: Feed::new("", "persistentvolumeclaims"),
            timers: Timers::new(),
            waiting: BTreeSet::new(),
        }
    }

    fn sync(&mut self, client: &mut Client<'_>, key: &Key) {
        self.timers.set(key.clone(), None);
        let object = self.sets.object(client.api, key);
        let Some(object) = object.filter(|set| get_metadata(set, "deletionTimestamp").is_null()) else {
            return;
        };
        for (pod, stray) in controlled(client.api, &object, "", "pods") {
            if !selects(client.api, &object, &pod) && get_metadata(&stray, "deletionTimestamp").is_null() {
                release(client, &pod, &stray, &object);
            }
        }
        let revisions = revisions::ensure(client, key, &object);
        let set = Set::of(client, key, &object);
        if set.fill(client, &revisions, &mut self.waiting) == Pass::GoesOn
            && set.shrink(client) == Pass::GoesOn
        {
            set.update(client, &revisions);
        }
        let set = Set::of(client, key, &object);
        let wakes = status::report(client, &set, &revisions);
        revisions::prune(client, &set, &revisions);
        self.timers.set(key.clone(), wakes);
    }
}

impl Actor for StatefulSets {
    fn boxed(&self) -> Box<dyn Actor> {
        Box::new(self.clone())
    }

    fn user(&self) -> Option<&'static str> {
        Some(USER)
    }

    fn act(&mut self, api: &mut Api, now: Timestamp) {
        let mut due: BTreeSet<Key> = self.sets.poll(api);
        // without sets, pods do not matter
        if api.count("apps", "statefulsets") > 0 {
            for pod in self.pods.poll(api) {
                let set = pod.name.rsplit_once('-').map(|(set, _)| set);
                let set = set.map(|set| Key::new(&pod.namespace, set));
                due.extend(set.filter(|set| self.sets.head(api, set).is_some()));
            }
            if !self.claims.poll(api).is_empty() {
                due.append(&mut self.waiting);
            }
        }
        while let Some(key) = self.timers.pop(now) {
            due.insert(key);
        }
        for key in due {
            self.sync(&mut Client { api, user: USER, now }, &key);
        }
    }

    fn restart(&mut self) {
        self.sets.rewind();
    }

    fn due(&self) -> Option<Timestamp> {
        self.timers.next()
    }
}

impl Set<'_> {
    fn delete(client: &mut Client<'_>, key: &Key, pod: &Value) {
        let options = json!({"preconditions": {"uid": metadata_text(pod, "uid")}});
        client.delete(&pod_path(key), &options);
    }

    /// Creates the pods that are missing, and their claims.
    fn fill(&self, client: &mut Client<'_>, revisions: &Revisions, waiting: &mut BTreeSet<Key>) -> Pass {
        for ordinal in self.ordinals() {
            let key = self.pod_key(ordinal);
            let Some(pod) = self.pods.get(&ordinal) else {
                if claims::ensure(client, self, ordinal) {
                    self.create(client, revisions, ordinal);
                } else {
                    waiting.insert(self.key.clone());
                }
                if self.is_ordered() {
                    return Pass::Ends;
                }
                continue;
            };
            if is_leaving(pod) {
                if self.is_ordered() {
                    return Pass::Ends;
                }
                continue;
            }
            match at(pod, "/status/phase").and_then(Value::as_str) {
                Some("Failed" | "Succeeded") => Self::delete(client, &key, pod),
                Some("Pending") => {
                    claims::ensure(client, self, ordinal);
                }
                _ => {}
            }
            claims::own(client, self, ordinal, None);
            if self.is_ordered() && !self.is_available(pod) {
                return Pass::Ends;
            }
        }
        Pass::GoesOn
    }

    /// Deletes pods beyond the ordinals, the highest first.
    fn shrink(&self, client: &mut Client<'_>) -> Pass {
        let ordinals = self.ordinals();
        let condemned = self
            .pods
            .iter()
            .filter(|(ordinal, _)| !ordinals.contains(ordinal));
        let condemned: Vec<(i64, &Arc<Value>)> =
            condemned.map(|(ordinal, pod)| (*ordinal, pod)).rev().collect();
        let broken = condemned.iter().filter(|(_, pod)| !self.is_available(pod));
        let lowest_broken = broken.map(|(ordinal, _)| *ordinal).min();
        for (ordinal, pod) in &condemned {
            claims::own(client, self, *ordinal, Some(pod));
            if !is_leaving(pod) {
                let waits = !self.is_available(pod) && lowest_broken != Some(*ordinal);
                if self.is_ordered() && waits {
                    return Pass::Ends;
                }
                Self::delete(client, &self.pod_key(*ordinal), pod);
            }
            if self.is_ordered() {
                return Pass::Ends;
            }
        }
        Pass::GoesOn
    }

    /// Deletes pods of an earlier revision, the highest first: they come again with the new one.
    fn update(&self, client: &mut Client<'_>, revisions: &Revisions) {
        if !self.is_rolling() {
            return;
        }
        let slots = || {
            self.ordinals()
                .rev()
                .map(|ordinal| (ordinal, self.pods.get(&ordinal)))
        };
        let is_available = |pod: Option<&Arc<Value>>| pod.is_some_and(|pod| self.is_available(pod));
        let away = slots().filter(|(_, pod)| !is_available(*pod)).count() as i64;
        let mut room = self.max_unavailable().saturating_sub(away);
        for (ordinal, pod) in slots().take_while(|(ordinal, _)| *ordinal >= self.partition()) {
            let Some(pod) = pod.filter(|pod| !is_leaving(pod) && revision(pod) != revisions.update) else {
                continue;
            };
            if self.is_available(pod) {
                if room <= 0 {
                    return;
                }
                room -= 1;
            }
            Self::delete(client, &self.pod_key(ordinal), pod);
        }
    }

    fn max_unavailable(&self) -> i64 {
        let given = at(self.object, "/spec/updateStrategy/rollingUpdate/maxUnavailable");
        let given: Option<IntOrString> = given.and_then(|value| serde_json::from_value(value.clone()).ok());
        let replicas = i32::try_from(self.replicas()).unwrap_or(i32::MAX);
        let scaled = given.map_or(1, |given| given.scaled_b(replicas, Rounding::Down));
        i64::from(scaled).max(1)
    }

    fn create(&self, client: &mut Client<'_>, revisions: &Revisions, ordinal: i64) {
        let key = self.pod_key(ordinal);
        let is_held = self.is_rolling() && ordinal < self.partition();
        let (template, revision) = if is_held {
            (&revisions.template, &revisions.current)
        } else {
            let template = at(self.object, "/spec/template");
            (template.unwrap_or(&Value::Null), &revisions.update)
        };
        let part = |pointer: &str| template.pointer(pointer).cloned().unwrap_or_default();
        let mut pod = json!({
            "metadata": {
                "name": key.name.as_ref(), "labels": part("/metadata/labels"),
                "annotations": part("/metadata/annotations"), "finalizers": part("/metadata/finalizers"),
                "ownerReferences": [reference(self.object, "StatefulSet")],
            },
            "spec": part("/spec"),
        });
        if let Some(Value::Object(labels)) = pod.pointer_mut("/metadata/labels") {
            labels.insert(
                "statefulset.kubernetes.io/pod-name".into(),
                key.name.as_ref().into(),
            );
            labels.insert("apps.kubernetes.io/pod-index".into(), ordinal.to_string().into());
            labels.insert(REVISION.into(), revision.as_str().into());
        }
        if let Some(Value::Object(spec)) = pod.get_mut("spec") {
            spec.insert("hostname".into(), key.name.as_ref().into());
            if let Some(service) = at(self.object, "/spec/serviceName") {
                spec.insert("subdomain".into(), service.clone());
            }
            let volumes = claims::volumes(self, ordinal, spec.get("volumes"));
            spec.insert("volumes".into(), volumes);
        }
        client.post(&format!("/api/v1/namespaces/{}/pods", key.namespace), &pod);
    }
}
