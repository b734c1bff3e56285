//! Clients that evict pods under budgets, and beside them one that evicts pods without a budget and writes a bare
//! status.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Request, header};
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Client, Config, Error};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use super::super::enforcement::EXHAUSTED;
use super::watched::Watched;
use super::{NAME, UNGUARDED};

/// The object whose status nobody reads, and the workload without a budget.
pub(super) const BARE: &str = "bare";
/// From one write of the bare status to the next, and from one eviction without a budget to the next.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(100)];
/// Most evictions that a client waits for at a time.
const WAITING: usize = 16;

/// Each has a connection of its own.
pub(super) struct Clients {
    evicting: Vec<Client>,
    other: Client,
}

/// How long requests took, and what else came of them.
#[derive(Default)]
pub(super) struct Times {
    pub(super) granted: Vec<Duration>,
    pub(super) refused: Vec<Duration>,
    /// Evictions without a budget.
    pub(super) unguarded: Vec<Duration>,
    /// Writes of the bare status.
    pub(super) status: Vec<Duration>,
    /// Evictions of pods that had gone meanwhile.
    pub(super) gone: usize,
    /// Errors that nobody expects.
    pub(super) others: Vec<String>,
}

impl Times {
    fn add(&mut self, other: Self) {
        self.granted.extend(other.granted);
        self.refused.extend(other.refused);
        self.unguarded.extend(other.unguarded);
        self.status.extend(other.status);
        self.gone += other.gone;
        self.others.extend(other.others);
    }

    /// Notes the answer to an eviction; true if the pod stays.
    fn note(&mut self, answer: Result<String, Error>, time: Duration) -> bool {
        match answer {
            Ok(_) => self.granted.push(time),
            Err(Error::Api(status)) if status.code == 404 => self.gone += 1,
            Err(Error::Api(status)) if status.code == 429 && status.message.contains(EXHAUSTED) => {
                self.refused.push(time);
                return true;
            }
            Err(error) => {
                self.others.push(error.to_string());
                return true;
            }
        }
        false
    }

    /// In words, of each kind.
    pub(super) fn quantiles(&self, percent: usize) -> String {
        let of = |times: &[Duration]| quantile(percent, times).as_secs_f64() * 1000.0;
        format!(
            "of {} granted evictions {:.1} ms, of {} refused ones {:.1} ms, of {} without a budget {:.1} ms, of {} bare status \
             writes {:.1} ms",
            self.granted.len(),
            of(&self.granted),
            self.refused.len(),
            of(&self.refused),
            self.unguarded.len(),
            of(&self.unguarded),
            self.status.len(),
            of(&self.status),
        )
    }
}

/// So many percent took no longer.
pub(super) fn quantile(percent: usize, times: &[Duration]) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let index = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(index).copied().unwrap_or_default()
}

impl Clients {
    pub(super) async fn new(kubeconfig: &Path, count: usize) -> Self {
        let mut clients = Vec::new();
        for _ in 0..=count {
            let file = Kubeconfig::read_from(kubeconfig).unwrap();
            let options = KubeConfigOptions::default();
            let mut config = Config::from_custom_kubeconfig(file, &options).await.unwrap();
            config.read_timeout = None;
            config.default_retry = false;
            clients.push(Client::try_from(config).unwrap());
        }
        let other = clients.remove(0);
        Self {
            evicting: clients,
            other,
        }
    }

    /// For the watch.
    pub(super) fn watcher(&self) -> Client {
        self.other.clone()
    }

    /// Patches the specification of a CloneSet.
    pub(super) async fn specify(&self, name: &str, spec: &Value) {
        let path = format!("/apis/apps.kruise.io/v1beta1/namespaces/{NAME}/clonesets/{name}");
        let patch = merge(&path, &json!({"spec": spec}));
        self.other.request_text(patch).await.unwrap();
    }

    /// All clients together evict so many pods a second, of one workload after the other.
    pub(super) async fn run(
        &self,
        watched: Arc<Watched>,
        apps: &[String],
        evictions: usize,
        until: Instant,
    ) -> Times {
        let count = self.evicting.len();
        let pause =
            Duration::from_secs(1) * u32::try_from(count).unwrap() / u32::try_from(evictions).unwrap();
        let tasks = self.evicting.iter().enumerate().map(|(number, client)| {
            let evictions = Evictions {
                client: client.clone(),
                watched: watched.clone(),
                namespace: NAME,
                apps: apps.to_vec(),
                turns: (number, count),
                pause,
                until,
            };
            tokio::spawn(evictions.run())
        });
        let mut tasks: Vec<_> = tasks.collect();
        tasks.push(tokio::spawn(write_bare_status(self.other.clone(), until)));
        let unguarded = Evictions {
            client: self.other.clone(),
            watched,
            namespace: UNGUARDED,
            apps: vec![BARE.to_owned()],
            turns: (0, 1),
            pause: PAUSES[1],
            until,
        };
        let unguarded = tokio::spawn(unguarded.run());
        let mut times = Times::default();
        for task in tasks {
            times.add(task.await.unwrap());
        }
        let mut unguarded = unguarded.await.unwrap();
        unguarded.unguarded = std::mem::take(&mut unguarded.granted);
        times.add(unguarded);
        times
    }
}

/// A pod, the answer to its eviction, and how long that took.
type Answered = (String, Result<String, Error>, Duration);

/// What one client evicts.
struct Evictions {
    client: Client,
    watched: Arc<Watched>,
    namespace: &'static str,
    /// Pods of these, one after the other.
    apps: Vec<String>,
    /// Its first turn, and how many there are to the next.
    turns: (usize, usize),
    pause: Duration,
    until: Instant,
}

impl Evictions {
    async fn run(self) -> Times {
        let (mut times, mut sent) = (Times::default(), JoinSet::new());
        let mut ticks = interval(self.pause);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        for turn in (self.turns.0..).step_by(self.turns.1) {
            ticks.tick().await;
            if Instant::now() >= self.until {
                break;
            }
            let app = &self.apps[turn % self.apps.len()];
            if let Some(pod) = self.watched.take(app, turn) {
                let (client, request) = (self.client.clone(), self.request(&pod));
                sent.spawn(async move {
                    let start = Instant::now();
                    let answer = client.request_text(request).await;
                    (pod, answer, start.elapsed())
                });
            }
            // A slow server gets no fewer requests, but for the most that a client waits for.
            while let Some(answered) = sent.try_join_next() {
                self.note(&mut times, answered.unwrap());
            }
            if sent.len() >= WAITING
                && let Some(answered) = sent.join_next().await
            {
                self.note(&mut times, answered.unwrap());
            }
        }
        for answered in sent.join_all().await {
            self.note(&mut times, answered);
        }
        times
    }

    fn note(&self, times: &mut Times, (pod, answer, time): Answered) {
        if times.note(answer, time) {
            self.watched.give_back(&pod);
        }
    }

    fn request(&self, pod: &str) -> Request<Vec<u8>> {
        let namespace = self.namespace;
        let metadata = json!({"namespace": namespace, "name": pod});
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata});
        let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/eviction");
        let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
        request.body(eviction.to_string().into_bytes()).unwrap()
    }
}

async fn write_bare_status(client: Client, until: Instant) -> Times {
    let path = format!("/apis/apps.kruise.io/v1alpha1/namespaces/{NAME}/podprobemarkers/{BARE}/status");
    let mut times = Times::default();
    let mut ticks = interval(PAUSES[0]);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for number in 1.. {
        ticks.tick().await;
        if Instant::now() >= until {
            break;
        }
        let patch = json!({"status": {"observedGeneration": 1, "matchedPods": number}});
        let start = Instant::now();
        client.request_text(merge(&path, &patch)).await.unwrap();
        times.status.push(start.elapsed());
    }
    times
}

fn merge(path: &str, patch: &Value) -> Request<Vec<u8>> {
    let request = Request::patch(path).header(header::CONTENT_TYPE, "application/merge-patch+json");
    request.body(patch.to_string().into_bytes()).unwrap()
}

#[test]
fn a_quantile_is_one_of_the_times() {
    let times: Vec<Duration> = (1..=100).rev().map(Duration::from_secs).collect();
    assert_eq!(quantile(99, &times), Duration::from_secs(99));
    assert_eq!(quantile(50, &times), Duration::from_secs(50));
    assert_eq!(quantile(99, &[]), Duration::ZERO);
}
