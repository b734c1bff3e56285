//! How much memory the process takes on a full node, and how much of a processor when nothing happens there and
//! when it probes all pods. The node's API server, its runtime and what is probed are in the process that measures.

use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::api::{Api, NODE_IMAGES, NODE_POD_PROBES, PODS};
use crate::node::{self, Folder, Node, settings, until};
use crate::runtime::{Runtime, State};
use crate::wire;

const PODS_OF_NODE: usize = 110;
/// Each with [`TAGS`] tags: a NodeImage has at most 256 images.
const IMAGES: usize = 100;
const TAGS: usize = 3;
/// Of memory without that of files, whose pages are code, in kibibytes. The images are pulled all at a time.
const MOST: u64 = 12 << 10;

/// Of all memory of an agent at rest, in kibibytes.
const MOST_AT_REST: u64 = 15 << 10;
/// Of a processor, in thousandths.
const MOST_OF_A_PROCESSOR: f64 = 1.0;
/// Of memory without that of files of an agent that probes, in kibibytes.
const MOST_WITH_PROBES: u64 = 12 << 10;
/// Of a processor, in thousandths.
const MOST_OF_A_PROCESSOR_WITH_PROBES: f64 = 20.0;
/// Requests and connections to each pod, and commands on the whole node, every second.
const PROBES_OF_POD: usize = 3;
const COMMANDS: usize = 10;
const PROBES: usize = PODS_OF_NODE * PROBES_OF_POD + COMMANDS;

/// From the last report to the measurement, and how long that takes.
const SETTLES: Duration = Duration::from_secs(15);
const MEASURED: Duration = Duration::from_mins(1);

/// Name of the variable with the agent's executable that is measured; without, it is that of this build.
const EXECUTABLE: &str = "KRUISE_DAEMON";

/// Memory of a process in kibibytes, by its name in the status: `VmRSS` is all of it, `RssAnon` that which is of no
/// file.
fn memory(child: &Child, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let prefix = format!("{name}:");
    let line = status.lines().find_map(|line| line.strip_prefix(&prefix));
    let number = line.unwrap().split_whitespace().next();
    number.unwrap().parse().unwrap()
}

/// Time that the threads of a process have run.
fn processor_time(child: &Child) -> Duration {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
    let time = |task: std::io::Result<std::fs::DirEntry>| {
        // A thread may end meanwhile. Those of an agent at rest do not.
        let text = std::fs::read_to_string(task.unwrap().path().join("schedstat")).unwrap();
        text.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    };
    Duration::from_nanos(tasks.map(time).sum())
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

/// A pod with three containers, as a kubelet reports it. Returns its UID.
fn create_pod(api: &Api, number: usize) -> String {
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
    let created = api.create(PODS, &pod);
    let status = |container| {
        json!({"name": container, "image": "registry.example.com/team/app:1.2.3", "imageID": "", "ready": true,
               "restartCount": 0, "containerID": format!("containerd://{}", container_id(container, number)),
               "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}})
    };
    let status = json!({"status": {"phase": "Running", "containerStatuses": names.map(status)}});
    api.merge(&format!("{PODS}/{name}/status"), &status);
    created["metadata"]["uid"].as_str().unwrap().to_owned()
}

fn container_id(name: &str, number: usize) -> String {
    format!("{name}{number:063}")
}

/// The containers of a pod in the runtime, with what their programs read.
fn run_containers(state: &mut State, uid: &str, number: usize) {
    let pairs = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter();
        pairs
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    };
    for name in ["a", "b", "c"] {
        let id = container_id(name, number);
        state
            .environments
            .insert(id.clone(), "PATH=/bin\nCFG=v1\n".into());
        state.containers.push(wire::Container {
            id,
            metadata: Some(wire::ContainerMetadata { name: name.into() }),
            state: 1,
            created_at: 1,
            labels: pairs(&[("io.kubernetes.pod.uid", uid)]),
            annotations: pairs(&[
                ("io.kubernetes.container.hash", "19fd3bfc"),
                ("io.kubernetes.container.restartCount", "0"),
            ]),
        });
    }
}

/// All images that the node is to have.
fn images() -> Value {
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
    Value::Object((0..IMAGES).map(image).collect())
}

/// Waits until the node has all images.
async fn pulled(api: &Api) {
    until("all images", || {
        let object = api.get(&format!("{NODE_IMAGES}/n1"));
        (object["status"]["succeeded"] == IMAGES * TAGS).then_some(())
    })
    .await;
}

/// The addresses of pods are their own.
fn address(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 1, u8::try_from(number + 1).unwrap())
}

/// The servers in pods.
#[derive(Default)]
struct Servers {
    ports: Vec<u16>,
    /// Connections that were made.
    accepted: Arc<AtomicUsize>,
    tasks: JoinSet<()>,
}

impl Servers {
    async fn start() -> Self {
        let mut servers = Self::default();
        for number in 0..PODS_OF_NODE {
            let listener = TcpListener::bind((address(number), 0)).await.unwrap();
            servers.ports.push(listener.local_addr().unwrap().port());
            let accepted = Arc::clone(&servers.accepted);
            servers.tasks.spawn(async move {
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    accepted.fetch_add(1, Ordering::Relaxed);
                    tokio::spawn(respond(stream));
                }
            });
        }
        servers
    }

    /// Probes of a pod, each for another container.
    fn probes(&self, number: usize) -> Vec<Value> {
        let port = self.ports[number];
        let get = json!({"httpGet": {"path": "/healthz", "port": port, "scheme": "HTTP"}});
        let connect = json!({"tcpSocket": {"port": port}});
        let command = json!({"exec": {"command": ["check", "--idle"]}});
        // A third of them is a request or a connection by turns.
        let turn = if number.is_multiple_of(2) { &get } else { &connect };
        let mut handlers = vec![("a", &get), ("b", &connect), ("c", turn)];
        if number < COMMANDS {
            handlers.push(("a", &command));
        }
        let probe = |(at, (container, handler)): (usize, &(&str, &Value))| {
            let mut probe = (*handler).clone();
            probe["periodSeconds"] = 1.into();
            probe["timeoutSeconds"] = 3.into();
            json!({"name": format!("marker#probe-{at}"), "containerName": container, "probe": probe})
        };
        handlers.iter().enumerate().map(probe).collect()
    }

    /// The probes of all pods, by the UIDs of these.
    fn node_pod_probe(&self, uids: &[String]) -> Value {
        let pod = |(number, uid): (usize, &String)| {
            json!({"name": format!("pod-{number}"), "namespace": "shop", "uid": uid,
                   "IP": address(number).to_string(), "probes": self.probes(number)})
        };
        let pods: Vec<Value> = uids.iter().enumerate().map(pod).collect();
        json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "NodePodProbe", "metadata": {"name": "n1"},
               "spec": {"podProbes": pods}})
    }
}

/// Answers a request. A connection that is closed had none.
async fn respond(mut stream: TcpStream) {
    let mut request = [0; 1024];
    if let Ok(1..) = stream.read(&mut request).await {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        let _gone = stream.write_all(answer).await;
    }
}

/// The agent that is measured, in a process of its own.
fn spawn(folder: &Folder) -> Killed {
    let own = env!("CARGO_BIN_EXE_kruise-daemon").into();
    let mut command = Command::new(std::env::var_os(EXECUTABLE).unwrap_or(own));
    let socket = folder.file("cri.sock");
    command.arg("--addr=127.0.0.1:0");
    command.arg(format!("--socket-file=unix://{}", socket.display()));
    command.arg("--kubeconfig").arg(folder.file("kubeconfig"));
    command.arg("--min-free-disk-percent=0");
    command.env("NODE_NAME", "n1").env("HOME", folder.path());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Killed(command.spawn().unwrap())
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// Fills the node of an agent that runs with images, and with pods, whose UIDs it returns; and waits until all is
/// reported.
async fn fill(api: &Api, runtime: &Runtime) -> Vec<String> {
    pulled(api).await;
    let uids: Vec<String> = (0..PODS_OF_NODE).map(|number| create_pod(api, number)).collect();
    for (number, uid) in uids.iter().enumerate() {
        run_containers(&mut runtime.state(), uid, number);
    }
    for number in 0..PODS_OF_NODE {
        until("a report on each pod", || {
            let pod = api.get(&format!("{PODS}/pod-{number}"));
            let report = pod["metadata"]["annotations"]["apps.kruise.io/runtime-containers-meta"].as_str()?;
            (report.matches("extractedEnvFromMetadataHash").count() == 3).then_some(())
        })
        .await;
    }
    uids
}

/// What an agent takes; memory in kibibytes.
struct Taken {
    resident: u64,
    anonymous: u64,
    /// Of a processor, in thousandths.
    share: f64,
}

impl Taken {
    /// Measures for [`MEASURED`], and prints it.
    async fn by(child: &Child, what: &str) -> Self {
        let before = processor_time(child);
        tokio::time::sleep(MEASURED).await;
        let spent = processor_time(child).saturating_sub(before);
        assert!(spent > Duration::ZERO, "nothing was measured");
        let taken = Self {
            resident: memory(child, "VmRSS"),
            anonymous: memory(child, "RssAnon"),
            share: spent.as_secs_f64() * 1000.0 / MEASURED.as_secs_f64(),
        };
        println!(
            "{what}, with {PODS_OF_NODE} pods and {} images: {:.1} MiB resident, {:.1} of them of no file, at most {:.1}; \
             {:.3} mCPU over {} s",
            IMAGES * TAGS,
            mebibytes(taken.resident),
            mebibytes(taken.anonymous),
            mebibytes(memory(child, "VmHWM")),
            taken.share,
            MEASURED.as_secs()
        );
        taken
    }
}

#[tokio::test]
#[ignore = "a measurement on Linux: cargo test --release -p kruise-agent --test it at_rest -- --ignored --nocapture"]
async fn an_agent_at_rest_takes_less_than_15_mebibytes_and_a_thousandth_of_a_processor() {
    let (folder, mut api) = Node::parts().await;
    api.define();
    node::want(&api, &images());
    api.answer();
    let runtime = Runtime::start(&folder.file("cri.sock"));
    settings(&folder, &api);
    let child = spawn(&folder);
    fill(&api, &runtime).await;
    tokio::time::sleep(SETTLES).await;
    let taken = Taken::by(&child.0, "at rest").await;
    let Taken { resident, share, .. } = taken;
    assert!((1..=MOST_AT_REST).contains(&resident), "{resident} KiB");
    assert!(share <= MOST_OF_A_PROCESSOR, "{share} mCPU");
}

/// Waits until all probes have succeeded, and events say so.
async fn probed(api: &Api) {
    until("the results of all probes", || {
        let text = api.get(&format!("{NODE_POD_PROBES}/n1"))["status"].to_string();
        (text.matches("\"Succeeded\"").count() == PROBES).then_some(())
    })
    .await;
    until("events on all results", || {
        let counts = api.events("KruiseProbeSucceeded").into_iter();
        let told: u64 = counts.filter_map(|event| event["count"].as_u64()).sum();
        (told == PROBES as u64).then_some(())
    })
    .await;
}

/// Once as probes run that came all together, and once as they run after a start of the agent, which spreads them.
#[tokio::test]
#[ignore = "a measurement on Linux: cargo test --release -p kruise-agent --test it with_probes -- --ignored --nocapture"]
async fn an_agent_with_probes_takes_less_than_12_mebibytes_beside_the_code_and_two_hundredths_of_a_processor()
{
    let (folder, mut api) = Node::parts().await;
    api.define();
    node::want(&api, &images());
    api.answer();
    let runtime = Runtime::start(&folder.file("cri.sock"));
    let servers = Servers::start().await;
    settings(&folder, &api);
    let child = spawn(&folder);
    let uids = fill(&api, &runtime).await;
    api.create(NODE_POD_PROBES, &servers.node_pod_probe(&uids));
    probed(&api).await;
    let node = (&api, &runtime, &servers);
    measure_with_probes(child, node, "with probes that came together").await;
    measure_with_probes(spawn(&folder), node, "with probes after a start").await;
}

/// Measures an agent whose probes have all run, and ends it.
async fn measure_with_probes(child: Killed, node: (&Api, &Runtime, &Servers), what: &str) {
    let (api, runtime, servers) = node;
    tokio::time::sleep(SETTLES).await;
    let version = || api.get(&format!("{NODE_POD_PROBES}/n1"))["metadata"]["resourceVersion"].clone();
    let runs = || servers.accepted.load(Ordering::Relaxed) + runtime.state().acts.len();
    let (version_before, runs_before) = (version(), runs());
    let taken = Taken::by(&child.0, what).await;
    let periods = usize::try_from(MEASURED.as_secs()).unwrap();
    let (run, expected) = (runs() - runs_before, periods * PROBES);
    // A second more or less.
    assert!(
        run.abs_diff(expected) <= PROBES,
        "{run} instead of {expected} runs"
    );
    assert_eq!(
        version(),
        version_before,
        "nothing has changed, and something was written"
    );
    let Taken { anonymous, share, .. } = taken;
    assert!(
        (1..=MOST_WITH_PROBES).contains(&anonymous),
        "{anonymous} KiB of no file"
    );
    assert!(share <= MOST_OF_A_PROCESSOR_WITH_PROBES, "{share} mCPU");
}

fn mebibytes(kibibytes: u64) -> f64 {
    kibibytes as f64 / 1024.0
}

/// The one measurement whose bar holds on any machine and in any build.
mod measurements {
    use super::*;

    #[tokio::test]
    #[ignore = "a measurement: cargo test -p kruise-agent --test it -- --ignored measurements::"]
    async fn a_full_node_takes_less_than_twelve_mebibytes_beside_the_code() {
        let (folder, mut api) = Node::parts().await;
        api.define();
        node::want(&api, &images());
        for number in 0..PODS_OF_NODE {
            create_pod(&api, number);
        }
        api.answer();
        let _runtime = Runtime::start(&folder.file("cri.sock"));
        settings(&folder, &api);
        let child = spawn(&folder);
        pulled(&api).await;
        // Buffers are given back.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let anonymous = memory(&child.0, "RssAnon");
        assert!((1..=MOST).contains(&anonymous), "{anonymous} KiB");
    }
}
