//! Pods whose node is gone are removed: nobody else would ever report that they stopped.
//!
//! Pods that name a node which never was are left alone: it may still come.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::json;

use crate::api::Api;
use crate::store::Key;
use crate::world::{Actor, Client, Feed, pod_path};

const USER: &str = "system:serviceaccount:kube-system:pod-garbage-collector";

/// Removes pods of nodes that are gone.
#[derive(Clone, Debug)]
pub(crate) struct Orphans {
    nodes: Feed,
    pods: Feed,
    placed: BTreeMap<Key, String>,
}

impl Orphans {
    pub(crate) fn new() -> Self {
        Self {
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
        let changed = self.nodes.poll(api);
        let gone: BTreeSet<&str> = changed
            .iter()
            .filter(|key| self.nodes.head(api, key).is_none())
            .map(|key| key.name.as_ref())
            .collect();
        if gone.is_empty() {
            return;
        }
        let mut client = Client { api, user: USER, now };
        for (key, _) in self
            .placed
            .iter()
            .filter(|(_, node)| gone.contains(node.as_str()))
        {
            client.delete(&pod_path(key), &json!({"gracePeriodSeconds": 0}));
        }
    }

    fn due(&self) -> Option<Timestamp> {
        None
    }
}
