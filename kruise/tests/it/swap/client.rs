//! A client that creates and deletes pods all the time: one that uses no feature, and one that gets a sidecar.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::cluster::request;
use crate::process::LIMIT;

/// Between two pods.
const PAUSE: Duration = Duration::from_millis(10);
/// Pods of either sort that are a few.
const ROUNDS: usize = 5;

/// What runs in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Stage {
    /// No manager yet; everything is installed.
    Installed,
    /// A manager that is called for pods of SidecarSets.
    Managed,
    /// No manager any more.
    Stopped,
}

/// One creation or deletion.
#[derive(Clone, Debug)]
pub(super) struct Done {
    /// Before it was sent, and after it was answered.
    pub(super) stages: [usize; 2],
    /// Does the pod use a feature?
    pub(super) is_injected: bool,
    pub(super) code: u16,
    /// The object, or why it was refused.
    pub(super) answer: Value,
}

impl Done {
    pub(super) fn is_refused(&self) -> bool {
        self.code >= 300
    }

    pub(super) fn is_created(&self) -> bool {
        self.code == 201
    }

    /// Was this stage there from its beginning to its end?
    pub(super) fn is_within(&self, stage: Stage) -> bool {
        self.stages == [stage as usize; 2]
    }

    /// Has the new pod this container?
    pub(super) fn has_container(&self, name: &str) -> bool {
        let containers = self.answer["spec"]["containers"].as_array();
        containers.is_some_and(|all| all.iter().any(|one| one["name"] == name))
    }
}

/// The client. It stops when it is asked for what it did, or is dropped.
pub(super) struct Client {
    stage: Arc<AtomicUsize>,
    rounds: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    works: Option<JoinHandle<Vec<Done>>>,
}

impl Client {
    /// Begins in this namespace. `inject` are the labels of pods that get a sidecar.
    pub(super) fn start(api: SocketAddr, namespace: &str, inject: &Value) -> Self {
        let stage = Arc::new(AtomicUsize::new(Stage::Installed as usize));
        let rounds = Arc::new(AtomicUsize::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let pods = format!("/api/v1/namespaces/{namespace}/pods");
        let labels = [json!({"client": "plain"}), inject.clone()];
        let (of_client, counted, stops) = (stage.clone(), rounds.clone(), stop.clone());
        let works = std::thread::spawn(move || {
            let mut done = Vec::new();
            for number in 0.. {
                if stops.load(Ordering::SeqCst) {
                    break;
                }
                for (is_injected, labels) in [false, true].into_iter().zip(&labels) {
                    let name = format!("client-{is_injected}-{number}");
                    one(
                        api,
                        &pods,
                        (&name, labels),
                        &of_client,
                        |stages, (code, answer)| {
                            done.push(Done {
                                stages,
                                is_injected,
                                code,
                                answer,
                            });
                        },
                    );
                }
                counted.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(PAUSE);
            }
            done
        });
        Self {
            stage,
            rounds,
            stop,
            works: Some(works),
        }
    }

    /// From now on the cluster is in this stage.
    pub(super) fn enters(&self, stage: Stage) {
        self.stage.store(stage as usize, Ordering::SeqCst);
    }

    /// Waits until it has created a few more pods.
    pub(super) fn goes_on(&self) {
        let (since, before) = (Instant::now(), self.rounds.load(Ordering::SeqCst));
        while self.rounds.load(Ordering::SeqCst) < before + ROUNDS {
            assert!(since.elapsed() < LIMIT, "the client creates no more pods");
            std::thread::sleep(PAUSE);
        }
    }

    /// What it did.
    pub(super) fn finish(mut self) -> Vec<Done> {
        self.stop.store(true, Ordering::SeqCst);
        self.works.take().unwrap().join().unwrap()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
    }
}

/// Is it the key of one of its pods?
pub(super) fn is_of_client(key: &str) -> bool {
    key.starts_with("pods. ") && key.contains("/client-")
}

/// Creates a pod, and deletes it if it was created.
fn one(
    api: SocketAddr,
    pods: &str,
    (name, labels): (&str, &Value),
    stage: &AtomicUsize,
    mut note: impl FnMut([usize; 2], (u16, Value)),
) {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}]}});
    let mut send = |method: &str, path: &str, body: &Value| {
        let before = stage.load(Ordering::SeqCst);
        let answer = request(api, method, path, "application/json", body);
        let is_created = answer.0 < 300;
        note([before, stage.load(Ordering::SeqCst)], answer);
        is_created
    };
    if send("POST", pods, &pod) {
        send(
            "DELETE",
            &format!("{pods}/{name}"),
            &json!({"gracePeriodSeconds": 0}),
        );
    }
}
