//! Nodes that are not well: their taints follow their conditions, and pods that do not tolerate `NoExecute` leave.
//!
//! Nodes are not watched for heartbeats: whoever sets a condition of a node says what it is.

mod eviction;
mod taints;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use self::eviction::Stay;
use crate::api::Api;
use crate::object::{at, get_metadata, metadata_text, seconds};
use crate::store::Key;
use crate::world::{Actor, Client, Feed, Timers, pod_path};

const USER: &str = "system:serviceaccount:kube-system:node-controller";

/// A pod that leaves its node.
#[derive(Clone, Debug)]
struct Leaving {
    uid: String,
    /// Since when its node has a taint that the pod tolerates only for a while.
    since: Timestamp,
}

/// Taints nodes, and removes pods that do not tolerate it.
#[derive(Clone, Debug)]
pub(crate) struct NodeLifecycle {
    nodes: Feed,
    pods: Feed,
    /// Where pods are.
    placed: BTreeMap<Key, String>,
    /// Taints `NoExecute` of nodes that have any.
    tainted: BTreeMap<String, Vec<Value>>,
    leaving: BTreeMap<Key, Leaving>,
    timers: Timers<Key>,
    /// Whether it records what it does.
    events: bool,
}

impl NodeLifecycle {
    pub(crate) fn new(events: bool) -> Self {
        Self {
            nodes: Feed::new("", "nodes"),
            pods: Feed::new("", "pods"),
            placed: BTreeMap::new(),
            tainted: BTreeMap::new(),
            leaving: BTreeMap::new(),
            timers: Timers::new(),
            events,
        }
    }

    fn node(&mut self, api: &mut Api, key: &Key, now: Timestamp) {
        let name = key.name.to_string();
        let node = self.nodes.object(api, key);
        let found = node.as_ref().map(|node| taints::of(node)).unwrap_or_default();
        if let Some(node) = node {
            if let Some(wanted) = taints::changed(&node, now) {
                let mut client = Client { api, user: USER, now };
                client.merge(
                    &format!("/api/v1/nodes/{name}"),
                    &json!({"spec": {"taints": wanted}}),
                );
                // What was written comes back as a change.
                return;
            }
            if taints::ready(&node) == Some("Unknown") {
                self.mark_pods(api, &name, now);
            }
        }
        let hard: Vec<Value> = found
            .into_iter()
            .filter(|taint| taint.get("effect") == Some(&"NoExecute".into()))
            .collect();
        if self.tainted.get(&name).map_or(&[][..], Vec::as_slice) == hard {
            return;
        }
        if hard.is_empty() {
            self.tainted.remove(&name);
        } else {
            self.tainted.insert(name.clone(), hard);
        }
        for pod in self.pods_of(&name) {
            self.pod(api, &pod, now);
        }
    }

    fn pods_of(&self, node: &str) -> Vec<Key> {
        let of_node = self.placed.iter().filter(|(_, place)| *place == node);
        of_node.map(|(key, _)| key.clone()).collect()
    }

    /// Nobody hears of the pods of a node that does not answer: they count as not ready.
    fn mark_pods(&self, api: &mut Api, node: &str, now: Timestamp) {
        for key in self.pods_of(node) {
            let Some(pod) = self.pods.object(api, &key).filter(|pod| is_ready(pod)) else {
                continue;
            };
            let mut client = Client { api, user: USER, now };
            let condition = json!({"type": "Ready", "status": "False", "lastTransitionTime": seconds(now)});
            client.strategic(
                &format!("{}/status", pod_path(&key)),
                &json!({"metadata": {"uid": metadata_text(&pod, "uid")}, "status": {"conditions": [condition]}}),
            );
            if self.events {
                client.event(
                    &pod,
                    "node-controller",
                    "Warning",
                    "NodeNotReady",
                    "Node is not ready",
                );
            }
        }
    }

    /// Notes where a pod is.
    fn place(&mut self, api: &Api, key: &Key) {
        let head = self.pods.head(api, key);
        let node = head.and_then(|head| self.pods.field(api, head, "spec.nodeName"));
        match node.filter(|node| !node.is_empty()) {
            Some(node) => {
                self.placed.insert(key.clone(), node.to_owned());
            }
            None => {
                self.placed.remove(key);
            }
        }
    }

    /// Decides whether a pod may stay, and for how long.
    fn pod(&mut self, api: &mut Api, key: &Key, now: Timestamp) {
        let taints = self.placed.get(key).and_then(|node| self.tainted.get(node));
        let pod = taints.and_then(|_| self.pods.object(api, key));
        let pod = pod.filter(|pod| get_metadata(pod, "deletionTimestamp").is_null());
        let stays = pod
            .as_ref()
            .zip(taints)
            .map_or(Stay::Forever, |(pod, taints)| eviction::stay(pod, taints));
        let (Some(pod), Some(most)) = (pod, stays.seconds()) else {
            self.timers.set(key.clone(), None);
            self.leaving.remove(key);
            return;
        };
        let uid = metadata_text(&pod, "uid");
        let known = self.leaving.get(key).filter(|known| known.uid == uid);
        let since = known.map_or(now, |known| known.since);
        let leaving = Leaving {
            uid: uid.to_owned(),
            since,
        };
        self.leaving.insert(key.clone(), leaving);
        let until = since.checked_add(most).unwrap_or(Timestamp::MAX);
        if until <= now {
            self.evict(api, key, &pod, now);
        } else {
            self.timers.set(key.clone(), Some(until));
        }
    }

    fn evict(&mut self, api: &mut Api, key: &Key, pod: &Value, now: Timestamp) {
        self.timers.set(key.clone(), None);
        let mut client = Client { api, user: USER, now };
        eviction::evict(&mut client, key, pod, self.events);
    }
}

impl Actor for NodeLifecycle {
    fn boxed(&self) -> Box<dyn Actor> {
        Box::new(self.clone())
    }

    fn user(&self) -> Option<&'static str> {
        Some(USER)
    }

    fn act(&mut self, api: &mut Api, now: Timestamp) {
        let changed = self.pods.poll(api);
        for key in &changed {
            self.place(api, key);
        }
        for key in self.nodes.poll(api) {
            self.node(api, &key, now);
        }
        if !self.tainted.is_empty() || !self.leaving.is_empty() {
            for key in &changed {
                self.pod(api, key, now);
            }
        }
        while let Some(key) = self.timers.pop(now) {
            self.pod(api, &key, now);
        }
    }

    fn restart(&mut self) {
        self.pods.rewind();
        self.nodes.rewind();
    }

    fn due(&self) -> Option<Timestamp> {
        self.timers.next()
    }
}

fn is_ready(pod: &Value) -> bool {
    let conditions = at(pod, "/status/conditions").and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .any(|one| one.get("type") == Some(&"Ready".into()) && one.get("status") == Some(&"True".into()))
}
