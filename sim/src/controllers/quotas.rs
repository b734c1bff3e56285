//! The status of resource quotas: what is used of them.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::Api;
use crate::object::metadata_text;
use crate::quota;
use crate::store::Key;
use crate::world::{Actor, Client, Feed};

const USER: &str = "system:serviceaccount:kube-system:resourcequota-controller";

/// Counts what quotas count. Without a quota it does nothing.
#[derive(Clone, Debug)]
pub(crate) struct Quotas {
    feed: Feed,
    known: BTreeSet<Key>,
}

impl Quotas {
    pub(crate) fn new() -> Self {
        Self {
            feed: Feed::new("", "resourcequotas"),
            known: BTreeSet::new(),
        }
    }
}

impl Actor for Quotas {
    fn boxed(&self) -> Box<dyn Actor> {
        Box::new(self.clone())
    }

    fn user(&self) -> Option<&'static str> {
        Some(USER)
    }

    fn act(&mut self, api: &mut Api, now: Timestamp) {
        for key in self.feed.poll(api) {
            if self.feed.head(api, &key).is_some() {
                self.known.insert(key);
            } else {
                self.known.remove(&key);
            }
        }
        for key in &self.known {
            let Some(object) = self.feed.object(api, key) else {
                continue;
            };
            let status = quota::status(api, &key.namespace, &object);
            if object.get("status") == Some(&status) {
                continue;
            }
            let path = format!(
                "/api/v1/namespaces/{}/resourcequotas/{}/status",
                key.namespace, key.name
            );
            let patch: Value = json!([
                {"op": "test", "path": "/metadata/uid", "value": metadata_text(&object, "uid")},
                {"op": "add", "path": "/status", "value": status},
            ]);
            let mut client = Client { api, user: USER, now };
            client.patch("application/json-patch+json", &path, &patch);
        }
    }

    fn restart(&mut self) {
        self.feed.rewind();
    }

    fn due(&self) -> Option<Timestamp> {
        None
    }
}
