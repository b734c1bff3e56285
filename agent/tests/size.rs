//! How much memory the process takes on a full node. The node's API server and runtime are in the process that measures.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

#[allow(dead_code)]
#[path = "it/api.rs"]
mod api;
#[allow(dead_code)]
#[path = "it/node.rs"]
mod node;
#[allow(dead_code)]
#[path = "it/runtime.rs"]
mod runtime;
#[allow(dead_code)]
#[path = "it/wire.rs"]
mod wire;

use std::collections::BTreeMap;
use std::process::{Child, Command};
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::api::{Api, NODE_IMAGES, PODS};
use crate::node::{Folder, Node, settings, until};
use crate::runtime::Runtime;

const PODS_OF_NODE: usize = 110;
/// Each with [`TAGS`] tags: a NodeImage has at most 256 images.
const IMAGES: usize = 100;
const TAGS: usize = 3;
/// Of memory without that of files, whose pages are code, in kibibytes. The images are pulled all at a time.
const MOST: u64 = 12 << 10;

/// Name of the variable with the folder of a child.
const CHILD: &str = "KRUISE_AGENT_SIZE";

/// What a process has, by the names of its status; nothing where that cannot be read.
fn memory(child: &Child) -> BTreeMap<String, u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let pairs = status.lines().filter_map(|line| {
        let (name, rest) = line.split_once(':')?;
        Some((name.to_owned(), rest.split_whitespace().next()?.parse().ok()?))
    });
    pairs.collect()
}

fn many(kind: &str, count: usize) -> Map<String, Value> {
    let one = |number| {
        (
            format!("example.com/{kind}-{number}"),
            json!(format!("value-{number}")),
        )
    };
    (0..count).map(one).collect()
}

/// A pod with three containers, as a kubelet reports it.
fn create_pod(api: &Api, number: usize) {
    let variable = |at: usize| json!({"name": format!("VARIABLE_{at}"), "value": format!("value-{at}")});
    let config =
        json!({"name": "CFG", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['config']"}}});
    let names = ["a", "b", "c"];
    let container = |name| {
        json!({"name": name, "image": "registry.example.com/team/app:1.2.3",
               "env": (0..10).map(variable).chain([config.clone()]).collect::<Vec<_>>()})
    };
    let mut annotations = many("annotation", 8);
    annotations.insert("config".into(), "v1".into());
    annotations.insert("kruise.io/sidecarset-hash".into(), "{}".into());
    let name = format!("pod-{number}");
    let pod = json!({"metadata": {"name": name, "labels": many("label", 12), "annotations": annotations},
        "spec": {"nodeName": "n1", "containers": names.map(container)}});
    api.create(PODS, &pod);
    let status = |container| {
        json!({"name": container, "image": "registry.example.com/team/app:1.2.3", "imageID": "", "ready": true,
               "restartCount": 0, "containerID": format!("containerd://{container}{number:063}"),
               "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}})
    };
    let status = json!({"status": {"phase": "Running", "containerStatuses": names.map(status)}});
    api.merge(&format!("{PODS}/{name}/status"), &status);
}

/// The agent, in a process of its own.
fn spawn(folder: &Folder) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "the_process", "--ignored"]);
    command.env(CHILD, folder.path());
    command.stdout(std::process::Stdio::null()).spawn().unwrap()
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

#[test]
#[ignore = "the child of the test below"]
fn the_process() {
    let Ok(folder) = std::env::var(CHILD) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (_stop, stopped) = tokio::sync::watch::channel(false);
        let settings = node::settings_at(folder.as_ref());
        kruise_agent::run(settings, None, stopped).await.unwrap();
    });
}

#[tokio::test]
async fn a_full_node_takes_less_than_twelve_mebibytes_beside_the_code() {
    let (folder, mut api) = Node::parts().await;
    api.define();
    let image = |number: usize| {
        let name = format!("registry.example.com/team-{number}/application-{number}");
        let owner = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "namespace": "shop",
                           "name": "warm-the-application", "uid": "0f6f7d6e-0000-4000-8000-000000000000"});
        let tag = |tag: usize| {
            json!({"tag": format!("1.2.{tag}"), "createdAt": "2026-01-02T03:04:00Z", "imagePullPolicy": "IfNotPresent",
                         "ownerReferences": [owner], "pullPolicy": {"timeoutSeconds": 600, "backoffLimit": 3}})
        };
        (name, json!({"tags": (0..TAGS).map(tag).collect::<Vec<_>>()}))
    };
    let images: Map<String, Value> = (0..IMAGES).map(image).collect();
    node::want(&api, &Value::Object(images));
    for number in 0..PODS_OF_NODE {
        create_pod(&api, number);
    }
    api.answer();
    let _runtime = Runtime::start(&folder.file("cri.sock"));
    settings(&folder, &api);
    let child = Killed(spawn(&folder));
    until("all images", || {
        let object = api.get(&format!("{NODE_IMAGES}/n1"));
        (object["status"]["succeeded"] == IMAGES * TAGS).then_some(())
    })
    .await;
    // Buffers are given back.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let memory = memory(&child.0);
    let anonymous = memory.get("RssAnon").copied().unwrap_or_default();
    assert!(anonymous <= MOST, "{anonymous} KiB");
}
