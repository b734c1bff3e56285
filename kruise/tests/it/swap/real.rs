//! A real API server that begins with stored objects, and what is stored in its etcd.
//!
//! `cargo xtask e2e --swap` starts one for each test. Objects are put into its etcd as they are, with their uids, times and
//! generations; then the controllers of Kubernetes are started, with the garbage collector. Nodes are objects without kubelets:
//! nothing but a manager, a client or a controller of Kubernetes can touch a pod.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kruise_plan_test_kit::{collection, resource};
use serde_json::{Value, json};

use super::cluster::{Cluster, Storage, Stored, key};
use super::openkruise::MANAGER;
use super::{planted_problems_are_found, there_and_back};
use crate::managers::DEFINITIONS;
use crate::process::{LIMIT, exchange};

/// Everything that Kubernetes stores is below this.
const ROOT: &str = "/registry/";

/// What is installed is created by requests; then objects are put into etcd, and the controllers of Kubernetes are started.
fn start(installed: &[Value], objects: &[Value]) -> Cluster {
    let variable =
        |name: &str| std::env::var(name).expect("cargo xtask e2e --swap starts a cluster and names it");
    let etcd = Etcd(variable("KRUISE_SWAP_ETCD").parse().unwrap());
    let (proxy, address) = proxy(&variable("KUBECTL"), &variable("KUBECONFIG"));
    let controllers = variable("KRUISE_SWAP_CONTROLLERS");
    let mut programs = vec![proxy];
    let api = Cluster::new(address, Etcd(etcd.0), ());
    for object in installed {
        let (code, answer) = api.request("POST", &collection(object), "application/json", object);
        assert!(code < 300, "{object}: {answer}");
    }
    until("all definitions are served", || {
        items(&api, DEFINITIONS).iter().all(|definition| {
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
    let pods = objects.iter().filter(|object| object["kind"] == "Pod").count();
    until("the pods are seen", || items(&api, "/api/v1/pods").len() == pods);
    let controllers = Command::new("sh")
        .arg(controllers)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    programs.push(Program(controllers.unwrap()));
    until("the controllers of Kubernetes work", || {
        let deployment = api.get(MANAGER);
        deployment["status"]["observedGeneration"] == deployment["metadata"]["generation"]
    });
    Cluster::new(address, etcd, programs)
}

fn items(api: &Cluster, path: &str) -> Vec<Value> {
    api.get(path)["items"].as_array().unwrap().clone()
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

impl Drop for Program {
    fn drop(&mut self) {
        // Both fail only if it has ended.
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
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
        let (_, answer) = exchange(self.0, "POST", path, ("application/json", &body.to_string()));
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
}

impl Storage for Etcd {
    fn stored(&self) -> Stored {
        let end = format!("{}0", ROOT.trim_end_matches('/'));
        let range = json!({"key": STANDARD.encode(ROOT), "range_end": STANDARD.encode(end)});
        let answer = self.call("/v3/kv/range", &range);
        let pairs = answer["kvs"].as_array().unwrap().iter();
        let objects = pairs.filter_map(|pair| {
            let value = STANDARD.decode(pair["value"].as_str()?).unwrap();
            // What has no kind is for the API server alone, as the addresses that it gives out.
            let mut object: Value = serde_json::from_slice(&value).ok()?;
            object.get("kind")?;
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
    there_and_back("1.8.4", start);
}

#[test]
#[ignore = "needs a real API server: cargo xtask e2e --swap"]
fn a_real_cluster_of_1_9_0_is_swapped_and_back_without_a_loss() {
    there_and_back("1.9.0", start);
}

#[test]
#[ignore = "needs a real API server: cargo xtask e2e --swap"]
fn a_real_cluster_of_main_is_swapped_and_back_without_a_loss() {
    there_and_back("main", start);
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
