//! Replica sets: as many pods as specified. A pod that leaves the selector is released, and another one is created.
//!
//! Not there: adoption of pods without an owner.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::objects::{controlled, controller, number, ready_since, reference, release, selects};
use crate::api::Api;
use crate::object::{at, get_metadata, metadata_text};
use crate::store::Key;
use crate::world::{Actor, Client, Feed, Timers, pod_path};

const USER: &str = "system:serviceaccount:kube-system:replicaset-controller";

/// Keeps replica sets at their size.
#[derive(Clone, Debug)]
pub(crate) struct ReplicaSets {
    sets: Feed,
    pods: Feed,
    /// Sets with pods that become available by waiting.
    timers: Timers<Key>,
    /// The sets of pods, to find the set of a deleted pod.
    owners: std::collections::BTreeMap<Key, Key>,
}

impl ReplicaSets {
    pub(crate) fn new() -> Self {
        Self {
            sets: Feed::new("apps", "replicasets"),
            pods: Feed::new("", "pods"),
            timers: Timers::new(),
            owners: std::collections::BTreeMap::new(),
        }
    }

    /// The set whose pod changed.
    fn owner(&mut self, api: &Api, key: &Key) -> Option<Key> {
        let Some(pod) = self.pods.object(api, key) else {
            return self.owners.remove(key);
        };
        let owner = controller(&pod).filter(|owner| owner.get("kind") == Some(&"ReplicaSet".into()))?;
        let owner = Key::new(&key.namespace, owner.get("name").and_then(Value::as_str)?);
        self.owners.insert(key.clone(), owner.clone());
        Some(owner)
    }

    fn sync(&mut self, api: &mut Api, key: &Key, now: Timestamp) {
        self.timers.set(key.clone(), None);
        let Some(set) = self.sets.object(api, key) else {
            return;
        };
        let pods = controlled(api, &set, "", "pods");
        let (active, strays): (Vec<_>, Vec<_>) = pods
            .iter()
            .filter(|(_, pod)| is_active(pod))
            .partition(|(pod, _)| selects(api, &set, pod));
        let mut client = Client { api, user: USER, now };
        let wanted = number(&set, "/spec/replicas");
        if get_metadata(&set, "deletionTimestamp").is_null() {
            for (key, pod) in strays {
                release(&mut client, key, pod, &set);
            }
            let missing = wanted - active.len() as i64;
            (0..missing).for_each(|_| create(&mut client, key, &set));
            if missing < 0 {
                let mut ranked = active.clone();
                ranked.sort_by_cached_key(|(key, pod)| rank(key, pod));
                for (pod, _) in ranked.into_iter().take(missing.unsigned_abs() as usize) {
                    client.delete(&pod_path(pod), &json!({}));
                }
            }
        }
        let (status, wakes) = status(&set, &active, now);
        self.timers.set(key.clone(), wakes);
        let current = set.get("status").unwrap_or(&Value::Null);
        let changed = status.as_object().is_some_and(|members| {
            members
                .iter()
                .any(|(name, value)| current.get(name).unwrap_or(&0.into()) != value)
        });
        if changed {
            let path = format!(
                "/apis/apps/v1/namespaces/{}/replicasets/{}/status",
                key.namespace, key.name
            );
            client.merge(&path, &json!({"status": status}));
        }
    }
}

impl Actor for ReplicaSets {
    fn boxed(&self) -> Box<dyn Actor> {
        Box::new(self.clone())
    }

    fn user(&self) -> Option<&'static str> {
        Some(USER)
    }

    fn act(&mut self, api: &mut Api, now: Timestamp) {
        let mut due: BTreeSet<Key> = self.sets.poll(api);
        for pod in self.pods.poll(api) {
            due.extend(self.owner(api, &pod));
        }
        while let Some(key) = self.timers.pop(now) {
            due.insert(key);
        }
        for key in due {
            self.sync(api, &key, now);
        }
    }

    fn restart(&mut self) {
        self.sets.rewind();
    }

    fn due(&self) -> Option<Timestamp> {
        self.timers.next()
    }
}

fn create(client: &mut Client<'_>, key: &Key, set: &Value) {
    let part = |pointer: &str| set.pointer(pointer).cloned().unwrap_or_default();
    let pod = json!({
        "metadata": {
            "generateName": format!("{}-", key.name), "ownerReferences": [reference(set, "ReplicaSet")],
            "labels": part("/spec/template/metadata/labels"),
            "annotations": part("/spec/template/metadata/annotations"),
            "finalizers": part("/spec/template/metadata/finalizers"),
        },
        "spec": part("/spec/template/spec"),
    });
    client.post(&format!("/api/v1/namespaces/{}/pods", key.namespace), &pod);
}

fn is_active(pod: &Value) -> bool {
    let phase = at(pod, "/status/phase").and_then(Value::as_str);
    get_metadata(pod, "deletionTimestamp").is_null() && !matches!(phase, Some("Succeeded" | "Failed"))
}

/// Which pods go first: without node, pending, not ready, of lower deletion cost, ready for less long, younger.
fn rank(key: &Key, pod: &Value) -> impl Ord + use<> {
    let cost = get_metadata(pod, "annotations").get("controller.kubernetes.io/pod-deletion-cost");
    let cost: i64 = cost
        .and_then(Value::as_str)
        .and_then(|text| text.parse().ok())
        .unwrap_or_default();
    let ready = ready_since(pod);
    let started = match at(pod, "/status/phase").and_then(Value::as_str) {
        Some("Pending") => 0,
        Some("Unknown") => 1,
        _ => 2,
    };
    (
        at(pod, "/spec/nodeName").is_some(),
        started,
        ready.is_some(),
        cost,
        Reverse(ready),
        Reverse(metadata_text(pod, "creationTimestamp").to_owned()),
        key.clone(),
    )
}

/// What the set counts, and when waiting alone will change it.
fn status(set: &Value, active: &[&(Key, Arc<Value>)], now: Timestamp) -> (Value, Option<Timestamp>) {
    let least = Duration::from_secs(u64::try_from(number(set, "/spec/minReadySeconds")).unwrap_or_default());
    let since: Vec<Timestamp> = active.iter().filter_map(|(_, pod)| ready_since(pod)).collect();
    let available = |since: &Timestamp| since.checked_add(least).unwrap_or(Timestamp::MAX);
    let labels = at(set, "/spec/template/metadata/labels").and_then(Value::as_object);
    let labelled = active.iter().filter(|(_, pod)| {
        let found = get_metadata(pod, "labels");
        labels
            .into_iter()
            .flatten()
            .all(|(key, value)| found.get(key) == Some(value))
    });
    let status = json!({
        "replicas": active.len(), "readyReplicas": since.len(), "fullyLabeledReplicas": labelled.count(),
        "availableReplicas": since.iter().filter(|since| available(since) <= now).count(),
        "observedGeneration": get_metadata(set, "generation"),
    });
    let wakes = since.iter().map(available).filter(|at| *at > now).min();
    (status, wakes)
}
