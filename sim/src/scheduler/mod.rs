//! A small scheduler: pods without a node get one.
//!
//! A node takes a pod if its resources suffice, its labels and name match, its taints are tolerated, the ports that
//! the pod takes of it are free and hard spread constraints stay within their skew. Of those that do, the one is
//! taken that the preferred terms of the pod's node affinity weigh most; of equals the one where soft spread
//! constraints, then the number of pods, are least; ties are broken by name. (kube-scheduler adds these up; here
//! the first that differs decides.) Pods are ordered by priority, then age, then name. A pod that fits nowhere has
//! the reason in its condition, and is tried again when nodes change or pods leave.
//!
//! A pod whose claims wait for their first consumer is promised a node, and has it once they are bound.
//!
//! Not there: preemption, affinity between pods, topology of volumes.

mod affinity;
mod node;
mod ports;
pub(crate) mod request;
mod resized;
mod spread;
pub(crate) mod taints;
mod volumes;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Value, json};

use self::node::{Node, Placed, Wanted};
use self::volumes::Unbound;
use crate::api::Api;
use crate::object::{at, get_metadata, metadata_text, seconds};
use crate::store::Key;
use crate::world::{Actor, Client, Feed, pod_path};

const USER: &str = "system:kube-scheduler";
/// The only profile that is served.
const PROFILE: &str = "default-scheduler";

/// The order of the queue: priority (highest first), age, key.
type Turn = (Reverse<i64>, String, Key);

/// Gives pods their nodes.
#[derive(Clone, Debug)]
pub(crate) struct Scheduler {
    node_feed: Feed,
    pod_feed: Feed,
    claim_feed: Feed,
    nodes: BTreeMap<String, Node>,
    placed: BTreeMap<Key, Placed>,
    /// Pods whose claims are being bound: their uid, and the node that they will have.
    promised: BTreeMap<Key, (String, String)>,
    /// Turns of pods that wait, and the generation that they had.
    turns: BTreeMap<Key, (Turn, i64)>,
    queue: BTreeSet<Turn>,
    /// Pods that fit nowhere when they were last tried.
    parked: BTreeSet<Turn>,
    /// Whether it records where pods go.
    events: bool,
}

impl Scheduler {
    pub(crate) fn new(events: bool) -> Self {
        Self {
            node_feed: Feed::new("", "nodes"),
            pod_feed: Feed::new("", "pods"),
            claim_feed: Feed::new("", "persistentvolumeclaims"),
            nodes: BTreeMap::new(),
            placed: BTreeMap::new(),
            promised: BTreeMap::new(),
            turns: BTreeMap::new(),
            queue: BTreeSet::new(),
            parked: BTreeSet::new(),
            events,
        }
    }

    /// Takes a node as it is now.
    fn node(&mut self, api: &Api, key: &Key) {
        let name = key.name.to_string();
        match self.node_feed.object(api, key) {
            Some(object) => self.nodes.entry(name).or_default().read(&object),
            None => {
                self.nodes.remove(&name);
            }
        }
        self.queue.append(&mut self.parked);
    }

    /// Takes a pod as it is now: placed, waiting, or no business of ours.
    fn pod(&mut self, api: &Api, key: &Key) {
        if self.is_as_placed(api, key) {
            return;
        }
        let object = self.pod_feed.object(api, key);
        let promised = self.promised(key, object.as_deref());
        let node = object
            .as_ref()
            .and_then(|pod| at(pod, "/spec/nodeName")?.as_str())
            .or(promised.as_deref());
        let phase = object.as_ref().and_then(|pod| at(pod, "/status/phase")?.as_str());
        let over = matches!(phase, Some("Succeeded" | "Failed"));
        match (&object, node) {
            (Some(pod), Some(node)) if !over => self.place(key, Some(Placed::of(pod, node))),
            _ => self.place(key, None),
        }
        let turn = object.filter(|pod| node_wanted(pod)).map(|pod| turn(&pod, key));
        if self.turns.get(key) == turn.as_ref() {
            // nothing that matters changed: what is parked stays parked
            return;
        }
        if let Some((old, _)) = self.turns.remove(key) {
            self.queue.remove(&old);
            self.parked.remove(&old);
        }
        if let Some(turn) = turn {
            self.queue.insert(turn.0.clone());
            self.turns.insert(key.clone(), turn);
        }
    }

    /// The node that a pod was promised; a promise that nobody needs any more is forgotten.
    fn promised(&mut self, key: &Key, pod: Option<&Value>) -> Option<String> {
        let (uid, node) = self.promised.get(key)?;
        let waits = pod.is_some_and(|pod| node_wanted(pod) && metadata_text(pod, "uid") == uid);
        if waits && self.nodes.get(node).is_some_and(|node| node.exists) {
            return Some(node.clone());
        }
        self.promised.remove(key);
        None
    }

    /// Whether nothing changed that matters here, found without reading the object: most changes are of status.
    fn is_as_placed(&self, api: &Api, key: &Key) -> bool {
        let (Some(placed), Some(head)) = (self.placed.get(key), self.pod_feed.head(api, key)) else {
            return false;
        };
        let fields = ["spec.nodeName", "status.phase"].map(|name| self.pod_feed.field(api, head, name));
        let [Some(node), Some(phase)] = fields else {
            return false;
        };
        !placed.unsettled
            && head.generation == placed.generation
            && node == placed.node
            && !matches!(phase, "Succeeded" | "Failed")
            && head.deleting == placed.leaving
            && placed.uid == head.uid.as_ref()
            && head
                .labels
                .iter()
                .map(|(key, value)| (key.as_ref(), value.as_ref()))
                .eq(placed
                    .labels
                    .iter()
                    .map(|(key, value)| (key.as_str(), value.as_str())))
    }

    /// Notes where a pod is. One that leaves makes room.
    fn place(&mut self, key: &Key, new: Option<Placed>) {
        if self.placed.get(key) == new.as_ref() {
            return;
        }
        if let Some(old) = self.placed.remove(key) {
            if let Some(node) = self.nodes.get_mut(&old.node) {
                node.remove(&old);
            }
            self.queue.append(&mut self.parked);
        }
        if let Some(new) = new {
            self.nodes.entry(new.node.clone()).or_default().add(&new);
            self.placed.insert(key.clone(), new);
        }
    }

    /// Finds a pod's node, or the reason why there is none.
    fn find(&self, key: &Key, pod: &Value) -> Result<String, String> {
        let nodes: Vec<(&String, &Node)> = self.nodes.iter().filter(|(_, node)| node.exists).collect();
        if nodes.is_empty() {
            return Err("no nodes available to schedule pods".into());
        }
        let wanted = Wanted::of(pod);
        let spread = spread::Constraints::of(pod, &key.namespace, &nodes, &self.placed);
        let mut fitting = Vec::new();
        let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
        for (name, node) in &nodes {
            let failed = node.refuses(name, pod, &wanted, &spread);
            if failed.is_empty() {
                let preference = affinity::preference(pod, name, &node.labels);
                fitting.push((Reverse(preference), spread.cost(node), node.pods, *name));
            }
            for reason in failed {
                *reasons.entry(reason).or_default() += 1;
            }
        }
        if let Some((_, _, _, name)) = fitting.into_iter().min() {
            return Ok(name.clone());
        }
        let mut reasons: Vec<String> = reasons
            .iter()
            .map(|(reason, count)| format!("{count} {reason}"))
            .collect();
        reasons.sort();
        let all = nodes.len();
        Err(format!("0/{all} nodes are available: {}.", reasons.join(", ")))
    }

    /// Finds a pod's node, and which claims are to be bound for it first.
    fn look(&mut self, api: &Api, key: &Key, pod: &Value) -> Result<(String, Vec<Unbound>), String> {
        let all = self.nodes.values().filter(|node| node.exists).count();
        let claims = volumes::unbound(api, key, pod);
        let claims = claims.or_else(|why| match all {
            // that there are no nodes is the better reason
            0 => Ok(Vec::new()),
            _ => Err(format!("0/{all} nodes are available: {why}.")),
        })?;
        let node = match self.promised(key, Some(pod)) {
            Some(node) => node,
            None => self.find(key, pod)?,
        };
        Ok((node, claims))
    }

    fn schedule(&mut self, api: &mut Api, now: Timestamp, turn: Turn) {
        let key = turn.2.clone();
        let Some(pod) = self.pod_feed.object(api, &key).filter(|pod| node_wanted(pod)) else {
            return;
        };
        let found = self.look(api, &key, &pod);
        let mut client = Client { api, user: USER, now };
        match found {
            Ok((node, claims)) if !claims.is_empty() => {
                self.place(&key, Some(Placed::of(&pod, &node)));
                let promise = (metadata_text(&pod, "uid").to_owned(), node);
                let is_new = self.promised.get(&key) != Some(&promise);
                for claim in claims.iter().filter(|claim| is_new || !claim.has_node) {
                    volumes::choose(&mut client, &claim.key, &promise.1);
                }
                self.promised.insert(key, promise);
                self.parked.insert(turn);
            }
            Ok((node, _)) => {
                self.promised.remove(&key);
                let binding = json!({"metadata": {"name": key.name.as_ref(), "namespace": key.namespace.as_ref(),
                    "uid": metadata_text(&pod, "uid")}, "target": {"kind": "Node", "name": node}});
                let answer = client.post(&format!("{}/binding", pod_path(&key)), &binding);
                // one that waits for a webhook is assumed to succeed: the node is not given away twice
                if answer.is_none_or(|answer| answer.code == 201) {
                    if self.events {
                        let (namespace, name) = (&key.namespace, &key.name);
                        let message = format!("Successfully assigned {namespace}/{name} to {node}");
                        client.event(&pod, PROFILE, "Normal", "Scheduled", &message);
                    }
                    self.place(&key, Some(Placed::of(&pod, &node)));
                }
            }
            Err(why) => {
                self.promised.remove(&key);
                self.place(&key, None);
                report(&mut client, &key, &pod, &why);
                self.parked.insert(turn);
            }
        }
    }
}

impl Actor for Scheduler {
    fn boxed(&self) -> Box<dyn Actor> {
        Box::new(self.clone())
    }

    fn user(&self) -> Option<&'static str> {
        Some(USER)
    }

    fn act(&mut self, api: &mut Api, now: Timestamp) {
        for key in self.node_feed.poll(api) {
            self.node(api, &key);
        }
        for key in self.pod_feed.poll(api) {
            self.pod(api, &key);
        }
        if !self.claim_feed.poll(api).is_empty() {
            self.queue.append(&mut self.parked);
        }
        while let Some(turn) = self.queue.pop_first() {
            self.schedule(api, now, turn);
        }
    }

    fn restart(&mut self) {
        self.queue.append(&mut self.parked);
    }

    fn due(&self) -> Option<Timestamp> {
        None
    }
}

fn turn(pod: &Value, key: &Key) -> (Turn, i64) {
    let priority = at(pod, "/spec/priority")
        .and_then(Value::as_i64)
        .unwrap_or_default();
    let created = metadata_text(pod, "creationTimestamp").to_owned();
    let generation = get_metadata(pod, "generation").as_i64().unwrap_or_default();
    ((Reverse(priority), created, key.clone()), generation)
}

/// Whether a pod waits for this scheduler.
fn node_wanted(pod: &Value) -> bool {
    let spec = |name: &str| pod.get("spec")?.get(name);
    let gates = spec("schedulingGates").and_then(Value::as_array);
    spec("nodeName").is_none()
        && get_metadata(pod, "deletionTimestamp").is_null()
        && gates.is_none_or(Vec::is_empty)
        && spec("schedulerName").is_none_or(|name| name == PROFILE)
}

/// Says in the pod's condition why it has no node.
fn report(client: &mut Client<'_>, key: &Key, pod: &Value, why: &str) {
    let list = at(pod, "/status/conditions").and_then(Value::as_array);
    let found = list
        .into_iter()
        .flatten()
        .find(|one| one.get("type") == Some(&"PodScheduled".into()));
    let text = |name: &str| found.and_then(|one| one.get(name)?.as_str()).unwrap_or_default();
    if (text("status"), text("reason"), text("message")) == ("False", "Unschedulable", why) {
        return;
    }
    let now = seconds(client.now);
    let since = if text("status") == "False" && !text("lastTransitionTime").is_empty() {
        text("lastTransitionTime")
    } else {
        &now
    };
    let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why,
        "lastProbeTime": null, "lastTransitionTime": since});
    client.strategic(
        &format!("{}/status", pod_path(key)),
        &json!({"status": {"conditions": [condition]}}),
    );
    client.event(pod, PROFILE, "Warning", "FailedScheduling", why);
}

#[cfg(test)]
mod tests;
