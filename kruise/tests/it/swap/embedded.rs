//! An embedded API that begins with stored objects, and what is stored in it.
//!
//! Objects are put into its storage as they are, with their uids, times and generations. Nodes have no kubelets:
//! nothing but a manager, a client or a controller of Kubernetes can touch a pod.

use std::sync::Arc;

use jiff::Timestamp;
use kruise_plan_test_kit::{collection, resource};
use kruise_sim::{
    Api, Config, Method, Options, Request, World,
    http::{Live, serve},
};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::cluster::{Cluster, Server, Stored, key};

/// What is installed is created by requests; then objects are put into the storage.
pub(super) fn start(installed: &[Value], objects: &[Value]) -> Cluster {
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
    Cluster::new(
        address,
        Embedded {
            live,
            _runtime: runtime,
        },
    )
}

/// The embedded API.
struct Embedded {
    live: Arc<Live>,
    _runtime: Runtime,
}

impl Server for Embedded {
    fn stored(&self) -> Stored {
        let snapshot = self.live.with_world(|world| world.api().snapshot());
        let lines = snapshot
            .lines()
            .skip(1)
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines
            .map(|mut line| (key(&line["object"]), line["object"].take()))
            .collect()
    }

    // Its garbage collector has always looked at everything.
    fn collect_garbage(&mut self) {}
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
