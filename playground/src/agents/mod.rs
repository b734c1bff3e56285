//! The agents of the nodes: the agent that is shipped, on the container runtimes of simulated nodes.
//!
//! A DaemonSet would run one on each node. Here each is a task of this process. It uses the API over HTTP, as one
//! on a node does. It starts when its node appears, ends with it, and is dead while the node does not answer. An
//! agent that fails starts again, as a kubelet would start it. Addresses of pods lead nowhere, so nothing is sent
//! to them.

mod node;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use kruise_agent::{Host, PodNetwork, Settings};
use kruise_agent_sim::{Caller, PACE, SimulatedNode, settings};
use kruise_api::names::nodeimage::AGENT;
use kruise_frame::{gates::Gates, jitter::jitter};
use kruise_runtime::client::{self, Source};
use kruise_runtime::follow::{Scope, follow};
use kruise_runtime::shutdown::stopped;
use kruise_runtime::{Client, Clock};
use kruise_sim::http::Live;
use kruise_sim::runtime::{Answer, Call, Error};
use kube_cache::{Delta, SharedInformer};
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

use self::node::Node;

/// Time limit of requests other than watches.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Images that an agent pulls at a time, as `kruise manifests --agent` has it.
const MAX_PULLS: NonZeroU32 = NonZeroU32::MIN.saturating_add(1);
/// From the failure of an agent to the start of the next one on its node.
const RESTART: Duration = Duration::from_secs(1);
/// How long all of them may take to end. Each ends within four seconds by itself.
const DRAIN: Duration = Duration::from_secs(5);

/// The agents of all nodes, in this process.
#[derive(Debug)]
pub(super) struct Agents {
    task: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

impl Agents {
    /// Starts agents for nodes that exist and for those that will, at most so many at a time. Nodes beyond wait for
    /// the end of another one. They use the API of the kubeconfig, and the runtimes of the nodes in `live`.
    pub(super) async fn start(
        live: Arc<Live>,
        kubeconfig: &Path,
        gates: &Gates,
        most: u16,
    ) -> anyhow::Result<Self> {
        let settings = client::Settings {
            user_agent: AGENT.to_owned(),
            timeout: TIMEOUT,
            rate: Some(PACE),
            host: String::new(),
            observer: None,
            clock: Clock::SYSTEM,
        };
        let client = client::connect(&Source::File(kubeconfig.to_owned()), settings).await?;
        let (stop, stopping) = watch::channel(false);
        let place = Place {
            live,
            client,
            gates: gates.clone(),
            permits: Arc::new(Semaphore::new(most.into())),
            stop: stopping,
        };
        let task = tokio::spawn(attend_all(place));
        Ok(Self { task, stop })
    }

    /// Ends all of them, once their last writes are done.
    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        self.stop.send_replace(true);
        if let Ok(ended) = tokio::time::timeout(DRAIN, &mut self.task).await {
            return Ok(ended?);
        }
        tracing::warn!("agents are still at work after {DRAIN:?}");
        self.task.abort();
        // It was aborted: its result does not matter.
        let _ = self.task.await;
        Ok(())
    }
}

/// What all agents share.
#[derive(Clone)]
struct Place {
    live: Arc<Live>,
    client: Client,
    gates: Gates,
    permits: Arc<Semaphore>,
    stop: watch::Receiver<bool>,
}

/// Runs an agent for each node, until all are stopped and have ended.
async fn attend_all(place: Place) {
    let (news, changes) = mpsc::unbounded_channel();
    let pass = move |delta: Delta<Node>| {
        // Nobody receives it when all are stopped.
        let _unheard = news.send(delta);
    };
    let (informer, refresh) = (SharedInformer::new([]), Notify::new());
    let nodes = Scope::new("/api/v1/nodes", None);
    let following = follow(
        &place.client,
        &nodes,
        &informer,
        &refresh,
        pass,
        jitter,
        place.stop.clone(),
    );
    let attending = attend_each(changes, |node, answers| attend(place.clone(), node, answers));
    // Following ends when all are stopped; its channel ends with it, and with the channel the start of agents.
    tokio::join!(following, attending);
}

/// Attends to each node that appears, with its name and whether it answers, until no more changes come and all of
/// them have ended. A node that is gone has no sender of answers.
async fn attend_each<A: Future<Output = ()> + Send + 'static>(
    mut changes: mpsc::UnboundedReceiver<Delta<Node>>,
    attend: impl Fn(String, watch::Receiver<bool>) -> A,
) {
    let mut agents = JoinSet::new();
    // Until the last agent has ended: no node is gone because all are stopped.
    let mut answers: BTreeMap<Box<str>, (Box<str>, watch::Sender<bool>)> = BTreeMap::new();
    while let Some(Delta { old, new }) = changes.recv().await {
        let Some(node) = new else {
            if let Some(old) = old {
                answers.remove(&old.metadata.name);
            }
            continue;
        };
        let known = answers.get(&node.metadata.name);
        if let Some((_, answers)) = known.filter(|(uid, _)| *uid == node.metadata.uid) {
            let is = node.answers();
            answers.send_if_modified(|was| std::mem::replace(was, is) != is);
        } else {
            let (sender, receiver) = watch::channel(node.answers());
            agents.spawn(attend(node.metadata.name.to_string(), receiver));
            answers.insert(node.metadata.name.clone(), (node.metadata.uid.clone(), sender));
        }
        while agents.try_join_next().is_some() {}
    }
    while agents.join_next().await.is_some() {}
}

/// Runs the agent of a node for as long as the node exists, or until all are stopped.
async fn attend(place: Place, node: String, answers: watch::Receiver<bool>) {
    let mut exists = answers.clone();
    let _permit = tokio::select! {
        biased;
        _gone = exists.wait_for(|_| false) => return,
        () = stopped(place.stop.clone()) => return,
        permit = place.permits.clone().acquire_owned() => permit,
    };
    let agent = || async {
        let ended = place.agent(&node).await;
        ended.inspect_err(|error| tracing::error!("the agent of {node} starts again: {error}"))
    };
    keep(answers, place.stop.clone(), agent).await;
}

/// Runs an agent while its node answers, and starts it again when it fails. It is dropped when its node does not
/// answer, as when the node loses power. When all are stopped, it ends by itself.
async fn keep<E, R: Future<Output = Result<(), E>>>(
    mut answers: watch::Receiver<bool>,
    stop: watch::Receiver<bool>,
    agent: impl Fn() -> R,
) {
    loop {
        tokio::select! {
            biased;
            () = stopped(stop.clone()) => return,
            answers = until(&mut answers, true) => if !answers {
                return;
            },
        }
        let ended = tokio::select! {
            biased;
            _exists = until(&mut answers, false) => continue,
            ended = agent() => ended,
        };
        if ended.is_ok() {
            return;
        }
        tokio::select! {
            biased;
            () = stopped(stop.clone()) => return,
            () = tokio::time::sleep(RESTART) => {}
        }
    }
}

/// Waits until a node answers, or until it does not; false if it is gone.
async fn until(answers: &mut watch::Receiver<bool>, wanted: bool) -> bool {
    // The last value of a node that is gone counts no more.
    answers.has_changed().is_ok() && answers.wait_for(|answers| *answers == wanted).await.is_ok()
}

impl Place {
    /// The agent of a node, until it is stopped or fails.
    async fn agent(&self, node: &str) -> Result<(), kruise_agent::Error> {
        let runtime = NodeRuntime {
            live: self.live.clone(),
            node: node.to_owned(),
        };
        let host = Host {
            // With a pace of its own, as each process has.
            client: self.client.named(AGENT),
            node: Arc::new(SimulatedNode::new(node, runtime)),
            pods: PodNetwork::Absent,
            jitter: Arc::new(jitter),
        };
        let settings = Settings {
            max_pulls: Some(MAX_PULLS),
            ..settings(node)
        };
        let settings = settings.gated(&|gate| self.gates.on(gate));
        kruise_agent::process(settings, host, self.stop.clone()).await
    }
}

/// The runtime of a node.
struct NodeRuntime {
    live: Arc<Live>,
    node: String,
}

impl Caller for NodeRuntime {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Answer, Error>> {
        self.live.call_runtime(&self.node, call).boxed()
    }

    fn ends(&self) -> watch::Receiver<u64> {
        // It never ends: runtimes of a playground stay.
        watch::channel(0).1
    }
}
