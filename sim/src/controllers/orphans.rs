//! Pods whose node is gone are removed: no node reports that they stopped.
//!
//! Pods that name a node which never was are left alone: it may still come. So may one that is gone only just now.
//! A deletion that is refused is tried again.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::api::Api;
use crate::store::Key;
use crate::world::{Actor, Client, Feed, pod_path};

/// How often pods that are still there are deleted again.
const AGAIN: SignedDuration = SignedDuration::from_secs(20);

const USER: &str = "system:serviceaccount:kube-system:pod-garbage-collector";

/// Removes pods of nodes that are gone.
#[derive(Clone, Debug)]
pub(crate) struct Orphans {
    nodes: Feed,
    pods: Feed,
    placed: BTreeMap<Key, String>,
    /// How long a node may be gone.
    patience: SignedDuration,
    /// Nodes that are gone, and when their pods are deleted next. Until then they may come back.
    missed: BTreeMap<String, Timestamp>,
}

impl Orphans {
    pub(crate) fn new(patience: SignedDuration) -> Self {
        Self {
            patience,
            missed: BTreeMap::new(),
            nodes: Feed::new("", "nodes"),
            pods: Feed::new("", "pods"),
            placed: BTreeMap::new(),
        }
    }

    fn pod(&mut self, api: &Api, key: &Key) {
        let node = self
            .pods
            .head(api, key)
            .and_then(|head| self.pods.field(api, head, "spec.nodeName"));
        match node.filter(|node| !node.is_empty()) {
            Some(node) => {
                self.placed.insert(key.clone(), node.to_owned());
            }
            None => {
                self.placed.remove(key);
            }
        }
    }
}

impl Actor for Orphans {
    fn boxed(&self) -> Box<dyn Actor> {
        Box::new(self.clone())
    }

    fn user(&self) -> Option<&'static str> {
        Some(USER)
    }

    fn act(&mut self, api: &mut Api, now: Timestamp) {
        for key in self.pods.poll(api) {
            self.pod(api, &key);
        }
        for key in self.nodes.poll(api) {
            let name = key.name.to_string();
            if self.nodes.head(api, &key).is_some() {
                self.missed.remove(&name);
            } else {
                let until = now.checked_add(self.patience).unwrap_or(now);
                self.missed.entry(name).or_insert(until);
            }
        }
        let gone: BTreeSet<String> = self
            .missed
            .extract_if(.., |_, until| *until <= now)
            .map(|(name, _)| name)
            .collect();
        if gone.is_empty() {
            return;
        }
        let again = now.checked_add(AGAIN).unwrap_or(now);
        let mut client = Client { api, user: USER, now };
        for (key, node) in &self.placed {
            if gone.contains(node.as_str()) {
                client.delete(&pod_path(key), &json!({"gracePeriodSeconds": 0}));
                self.missed.insert(node.clone(), again);
            }
        }
    }

    fn due(&self) -> Option<Timestamp> {
        self.missed.values().min().copied()
    }
}
