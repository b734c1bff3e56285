//! An API server that begins with stored objects, reached over plain HTTP.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use kruise_plan_test_kit::{collection, resource};
use serde_json::{Value, json};

use crate::command::{Ended, Folder};
use crate::process::exchange_in;

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// What is stored, by group, resource, namespace and name.
pub(super) type Stored = BTreeMap<String, Value>;

/// What serves for as long as it is there.
pub(super) trait Server {
    /// Everything that is stored, as it is stored, with the version of its last write.
    fn stored(&self) -> Stored;

    /// Lets the garbage collector of Kubernetes look at everything that is there now, and waits until it has.
    fn collect_garbage(&mut self);
}

/// An API server.
pub(super) struct Cluster {
    pub(super) address: SocketAddr,
    server: Box<dyn Server>,
    folder: Folder,
}

impl Cluster {
    pub(super) fn new(address: SocketAddr, server: impl Server + 'static) -> Self {
        Self {
            address,
            server: Box::new(server),
            folder: Folder::new(),
        }
    }

    /// Code and body of the answer.
    pub(super) fn request(&self, method: &str, path: &str, media: &str, body: &Value) -> (u16, Value) {
        request(self.address, method, path, media, body)
    }

    pub(super) fn get(&self, path: &str) -> Value {
        let (code, object) = self.request("GET", path, JSON, &Value::Null);
        assert_eq!(code, 200, "{path}: {object}");
        object
    }

    fn must(&self, method: &str, path: &str, media: &str, body: &Value) {
        let (code, answer) = self.request(method, path, media, body);
        assert!(code < 300, "{method} {path}: {answer}");
    }

    pub(super) fn merge(&self, path: &str, patch: &Value) {
        self.must("PATCH", path, MERGE, patch);
    }

    pub(super) fn delete(&self, path: &str) {
        self.must("DELETE", path, JSON, &json!({}));
    }

    /// Creates the object, or changes the one that is there, as `kubectl apply` does; definitions are replaced.
    pub(super) fn apply(&self, object: &Value) {
        let collection = collection(object);
        let (code, answer) = self.request("POST", &collection, JSON, object);
        if code != 409 {
            assert_eq!(code, 201, "{answer}");
            return;
        }
        let path = format!("{collection}/{}", object["metadata"]["name"].as_str().unwrap());
        if object["kind"] == "CustomResourceDefinition" {
            let mut definition = self.get(&path);
            definition["spec"] = object["spec"].clone();
            self.must("PUT", &path, JSON, &definition);
        } else {
            self.must("PATCH", &path, STRATEGIC, object);
        }
    }

    /// Runs `kruise` to its end on this server.
    pub(super) fn kruise(&self, arguments: &[&str]) -> Ended {
        let kubeconfig = self.folder.kubeconfig(self.address);
        self.folder.kruise(&[arguments, &[kubeconfig.as_str()]].concat())
    }

    /// See [`Server::stored`].
    pub(super) fn stored(&self) -> Stored {
        self.server.stored()
    }

    /// See [`Server::collect_garbage`].
    pub(super) fn collect_garbage(&mut self) {
        self.server.collect_garbage();
    }
}

/// A request; returns code and body.
pub(super) fn request(
    server: SocketAddr,
    method: &str,
    path: &str,
    media: &str,
    body: &Value,
) -> (u16, Value) {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let (head, body) = exchange_in("HTTP/1.0", server, method, path, (media, &body));
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    (code, serde_json::from_str(&body).unwrap_or_default())
}

/// Resource, namespace and name of an object.
pub(super) fn key(object: &Value) -> String {
    let (group, plural) = resource(object);
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    format!("{plural}.{group} {}/{}", text("namespace"), text("name"))
}
