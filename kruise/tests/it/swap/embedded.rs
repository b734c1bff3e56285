//! An embedded API that begins with stored objects, and what is stored in it.
//!
//! Objects are put into its storage as they are, with their uids, times and generations. Nodes have no kubelets: nothing but a
//! manager, a client or a controller of Kubernetes can touch a pod.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use jiff::Timestamp;
use kruise_plan_test_kit::{collection, resource};
use kruise_sim::{
    Api, Config, Method, Options, Request, World,
    http::{Live, serve},
};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::command::{Ended, Folder};
use crate::process::exchange;

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// What is stored, by group, resource, namespace and name.
pub(super) type Stored = BTreeMap<String, Value>;

/// An API server.
pub(super) struct Embedded {
    // Serves for as long as it is there.
    _runtime: Runtime,
    live: Arc<Live>,
    pub(super) address: SocketAddr,
    folder: Folder,
}

impl Embedded {
    /// What is installed is created by requests; then objects are put into the storage.
    pub(super) fn new(installed: &[Value], objects: &[Value]) -> Self {
        let (config, now) = (Config::default(), Timestamp::now());
        let options = Options {
            stages: String::new(),
            ..Options::default()
        };
        let mut world = World::new(&config, &options, now).unwrap();
        for object in installed {
            let response = world.handle(&Request::new(Method::Post, &collection(object), Some(object)));
            let response = response.response().unwrap();
            assert!(response.code < 300, "{object}: {}", response.value());
        }
        let snapshot = with_objects(&world.into_api().snapshot(), objects);
        let api = Api::restore(&config, &snapshot).unwrap();
        let live = Live::new(World::over(api, &options, config.seed, now).unwrap());
        let runtime = Runtime::new().unwrap();
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
            .unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(serve(listener, live.clone()));
        Self {
            _runtime: runtime,
            live,
            address,
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

    /// Everything that is stored, as it is stored.
    pub(super) fn stored(&self) -> Stored {
        let snapshot = self.live.with_world(|world| world.api().snapshot());
        let lines = snapshot
            .lines()
            .skip(1)
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines
            .map(|mut line| (key(&line["object"]), line["object"].take()))
            .collect()
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
    let (head, body) = exchange(server, method, path, (media, &body));
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    (code, serde_json::from_str(&body).unwrap_or_default())
}

/// Resource, namespace and name of an object.
pub(super) fn key(object: &Value) -> String {
    let (group, plural) = resource(object);
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    format!("{plural}.{group} {}/{}", text("namespace"), text("name"))
}

/// A snapshot with further objects, which are written one after the other.
fn with_objects(snapshot: &str, objects: &[Value]) -> String {
    let (header, lines) = snapshot.split_once('\n').unwrap();
    let mut header: Value = serde_json::from_str(header).unwrap();
    let (revision, count) = (
        header["revision"].as_u64().unwrap(),
        header["objects"].as_u64().unwrap(),
    );
    let mut text = lines.to_owned();
    for (number, object) in (revision + 1..).zip(objects) {
        let (group, resource) = resource(object);
        let mut object = object.clone();
        object["metadata"]["resourceVersion"] = json!(number.to_string());
        let line = json!({"group": group, "resource": resource, "object": object});
        text += &line.to_string();
        text.push('\n');
    }
    let added = objects.len() as u64;
    header["revision"] = json!(revision + added);
    header["objects"] = json!(count + added);
    format!("{header}\n{text}")
}
