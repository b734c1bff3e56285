//! A real API server that begins with stored objects, and what is stored in its etcd.
//!
//! `cargo xtask e2e --swap` starts one for each test. Objects are put into its etcd as they are, with their uids,
//! times and generations; then the controllers of Kubernetes are started, with the garbage collector. Nodes are
//! objects without kubelets: nothing but a manager, a client or a controller of Kubernetes can touch a pod.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kruise_plan_test_kit::{collection, resource};
use serde_json::{Value, json};

use super::cluster::{Cluster, Server, Stored, key, request};
use super::openkruise::MANAGER;
use super::{planted_problems_are_found, there_and_back};
use crate::managers::DEFINITIONS;
use crate::process::{LIMIT, exchange_in};

/// Everything that Kubernetes stores is below this.
const ROOT: &str = "/registry/";
/// What only the API server reads: addresses and ports that it has given out, and its own lease.
const ALONE: [&str; 2] = ["ranges/", "masterleases/"];
const JSON: &str = "application/json";

/// What is installed is created by requests; then objects are put into etcd, and the controllers of Kubernetes are
/// started.
fn start(installed: &[Value], objects: &[Value]) -> Cluster {
    let variable =
        |name: &str| std::env::var(name).expect("cargo xtask e2e --swap starts a cluster and names it");
    let etcd = Etcd(variable("KRUISE_SWAP_ETCD").parse().unwrap());
    let (proxy, address) = proxy(&variable("KUBECTL"), &variable("KUBECONFIG"));
    for object in installed {
        let (code, answer) = request(address, "POST", &collection(object), JSON, object);
        assert!(code < 300, "{object}: {answer}");
    }
    until("all definitions are served", || {
        items(address, DEFINITIONS).iter().all(|definition| {
            let mut conditions = definition["status"]["conditions"]
                .as_array()
                .into_iter()
                .flatten();
            conditions.any(|one| one["type"] == "Established" && one["status"] == "True")
        })
    });
    for object in objects {
        etcd.put(object);
    }
    let mut by_collection: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for object in objects {
        let mut everywhere = object.clone();
        everywhere["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("namespace");
        let uids = by_collection.entry(collection(&everywhere)).or_default();
        uids.insert(uid(object));
    }
    for (collection, expected) in by_collection {
        until("the objects are seen", || {
            let seen = items(address, &collection);
            let seen: BTreeSet<String> = seen.iter().map(uid).collect();
            seen.is_superset(&expected)
        });
    }
    let script = variable("KRUISE_SWAP_CONTROLLERS");
    let server = Real {
        address,
        etcd,
        controllers: controllers(&script),
        script,
        _proxy: proxy,
    };
    server.wait_collected();
    until("the controllers of Kubernetes work", || {
        let deployment = request(address, "GET", MANAGER, JSON, &Value::Null).1;
        deployment["status"]["observedGeneration"] == deployment["metadata"]["generation"]
    });
    Cluster::new(address, server)
}

/// The API server and its controllers.
struct Real {
    address: SocketAddr,
    etcd: Etcd,
    controllers: Program,
    script: String,
    _proxy: Program,
}

impl Real {
    /// Waits until an object whose owner has never existed is deleted, which comes after everything that was there
    /// before.
    fn wait_collected(&self) {
        let configs = "/api/v1/namespaces/default/configmaps";
        let owner = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "never", "uid": "00000000-0000-4000-8009-000000000000"});
        let orphan = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "orphan", "ownerReferences": [owner]}});
        let (code, answer) = request(self.address, "POST", configs, JSON, &orphan);
        assert_eq!(code, 201, "{answer}");
        until("the garbage collector works", || {
            let (code, _) = request(
                self.address,
                "GET",
                &format!("{configs}/orphan"),
                JSON,
                &Value::Null,
            );
            code == 404
        });
    }
}

impl Server for Real {
    fn stored(&self) -> Stored {
        self.etcd.stored()
    }

    /// A garbage collector that is started looks at everything.
    fn collect_garbage(&mut self) {
        self.controllers.stop();
        self.controllers = controllers(&self.script);
        self.wait_collected();
    }
}

/// The controllers of Kubernetes. They log in the folder of the script.
fn controllers(script: &str) -> Program {
    let started = Command::new("sh").arg(script).stdin(Stdio::null()).spawn();
    Program(started.unwrap())
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap().to_owned()
}

fn items(api: SocketAddr, path: &str) -> Vec<Value> {
    let (code, mut list) = request(api, "GET", path, JSON, &Value::Null);
    match (code, list["items"].take()) {
        (200, Value::Array(items)) => items,
        // The storage of a new kind is not ready at once.
        (429, _) => Vec::new(),
        (_, _) => panic!("{path}: {code} {list}"),
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < LIMIT, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A program that is killed when it is dropped.
struct Program(Child);

impl Program {
    fn stop(&mut self) {
        // Both fail only if it has ended.
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The API server with the rights of its administrator, over plain HTTP.
fn proxy(kubectl: &str, kubeconfig: &str) -> (Program, SocketAddr) {
    let mut child = Command::new(kubectl)
        .args(["proxy", "--port=0", "--kubeconfig", kubeconfig])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let printed = child.stdout.take().unwrap();
    let proxy = Program(child);
    BufReader::new(printed).read_line(&mut line).unwrap();
    let address = line.trim().rsplit(' ').next().unwrap().parse();
    (
        proxy,
        address.unwrap_or_else(|_| panic!("kubectl proxy printed {line}")),
    )
}

/// etcd's interface of JSON over plain HTTP.
struct Etcd(SocketAddr);

impl Etcd {
    fn call(&self, path: &str, body: &Value) -> Value {
        let (_, answer) = exchange_in("HTTP/1.0", self.0, "POST", path, (JSON, &body.to_string()));
        serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{path}: {answer}"))
    }

    fn put(&self, object: &Value) {
        let mut object = object.clone();
        // It is the version of the key.
        object["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("resourceVersion");
        let pair =
            json!({"key": STANDARD.encode(path(&object)), "value": STANDARD.encode(object.to_string())});
        let answer = self.call("/v3/kv/put", &pair);
        assert!(answer["header"]["revision"].is_string(), "{answer}");
    }

    /// See [`Server::stored`].
    fn stored(&self) -> Stored {
        let end = format!("{}0", ROOT.trim_end_matches('/'));
        let range = json!({"key": STANDARD.encode(ROOT), "range_end": STANDARD.encode(end)});
        let answer = self.call("/v3/kv/range", &range);
        let text = |encoded: &Value| STANDARD.decode(encoded.as_str().unwrap_or_default()).unwrap();
        let objects = answer["kvs"].as_array().unwrap().iter().filter_map(|pair| {
            let at = String::from_utf8(text(&pair["key"])).unwrap();
            let parsed = serde_json::from_slice(&text(&pair["value"]));
            if ALONE
                .iter()
                .any(|folder| at.starts_with(&format!("{ROOT}{folder}")))
            {
                return None;
            }
            let mut object: Value = parsed.unwrap_or_else(|error| panic!("{at}: {error}"));
            object["metadata"]["resourceVersion"] = pair["mod_revision"].clone();
            Some((key(&object), object))
        });
        objects.collect()
    }
}

/// The key of an object.
fn path(object: &Value) -> String {
    let (group, plural) = resource(object);
    let folder = match (group.as_str(), plural.as_str()) {
        ("", "nodes") => "minions".to_owned(),
        (group, plural) if group.ends_with("kruise.io") => format!("{group}/{plural}"),
        (_, plural) => plural.to_owned(),
    };
    let (metadata, name) = (&object["metadata"], object["metadata"]["name"].as_str().unwrap());
    match metadata["namespace"].as_str() {
        None | Some("") => format!("{ROOT}{folder}/{name}"),
        Some(namespace) => format!("{ROOT}{folder}/{namespace}/{name}"),
    }
}

#[test]
#[ignore = "needs a real API server: cargo xtask e2e --swap"]
fn a_real_cluster_of_1_8_4_is_swapped_and_back_without_a_loss() {
    there_and_back("1.8.4", 1, start);
}

#[test]
#[ignore = "needs a real API server: cargo xtask e2e --swap"]
fn a_real_cluster_of_1_9_0_is_swapped_and_back_without_a_loss() {
    there_and_back("1.9.0", 1, start);
}

#[test]
#[ignore = "needs a real API server: cargo xtask e2e --swap"]
fn a_real_cluster_of_main_is_swapped_to_three_managers_and_back_without_a_loss() {
    there_and_back("main", 3, start);
}

#[test]
#[ignore = "needs a real API server: cargo xtask e2e --swap"]
fn problems_in_a_real_cluster_of_1_8_4_are_found_and_nothing_else() {
    planted_problems_are_found("1.8.4", start);
}

#[test]
#[ignore = "needs a real API server: cargo xtask e2e --swap"]
fn problems_in_a_real_cluster_of_1_9_0_are_found_and_nothing_else() {
    planted_problems_are_found("1.9.0", start);
}

#[test]
#[ignore = "needs a real API server: cargo xtask e2e --swap"]
fn problems_in_a_real_cluster_of_main_are_found_and_nothing_else() {
    planted_problems_are_found("main", start);
}
