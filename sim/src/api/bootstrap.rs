//! What every cluster starts with.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Api;
use crate::wire::{Method, Request};

impl Api {
    pub(super) fn bootstrap(&mut self, now: Timestamp) {
        for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
            let namespace = json!({"metadata": {"name": name}});
            self.must("/api/v1/namespaces", &namespace, now);
        }
        let service = json!({
            "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
            "spec": {"ports": [{"name": "https", "port": 443, "targetPort": 6443}]},
        });
        self.must("/api/v1/namespaces/default/services", &service, now);
        for (name, value) in [
            ("system-node-critical", 2_000_001_000),
            ("system-cluster-critical", 2_000_000_000),
        ] {
            let class = json!({"metadata": {"name": name}, "value": value});
            self.must("/apis/scheduling.k8s.io/v1/priorityclasses", &class, now);
        }
        self.tick(now);
    }

    /// A request of the server to itself, which cannot fail on a fresh store.
    fn must(&mut self, path: &str, body: &Value, now: Timestamp) {
        let outcome = self.handle(&Request::new(Method::Post, path, Some(body)), now);
        debug_assert!(
            outcome.response().is_some_and(|response| response.code == 201),
            "{path} is writable"
        );
    }
}
