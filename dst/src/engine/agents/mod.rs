//! The agents of nodes: the process that is shipped (`kruise_agent`), on simulated container runtimes.
//!
//! Each node has one. Its whole process is run, and not its state machine (`kruise_agent_core`) alone: so its
//! watches, its repeated requests, and what it makes of answers and errors are under test, too, and there is no
//! second piece of code that could carry its effects out in another way. What it gets from here is what a manager
//! gets:
//!
//! * its requests go over the same faulty network ([`link`]), with the same kinds of loss;
//! * its clock is the virtual one, its random numbers follow from the seed;
//! * its runtime is that of the node in `kruise_sim` ([`Runtime`], by `kruise_agent_sim`): calls are data, answered
//!   at a time of the world. A runtime may be away or slow (`kruise_sim::runtime::Fault`).
//!
//! An agent dies by itself at a share of the stops that it requests ([`Setup::dying`]), right before or right after the
//! runtime has answered, and as managers do: after one of its writes, or at once. Then all that it knew is lost,
//! the calls that it made are cancelled, and some time later another one starts, as a kubelet does it. Of a stop
//! the runtime knows only that it began: the container ends in any case. While an agent is away, none starts
//! ([`leave`], [`come_back`]).
//!
//! Not simulated: requests and connections to pods. Probes and hooks of that form cannot be run.

mod runtime;

use std::{sync::Arc, time::Duration};

use kruise_agent::{Host, PodNetwork};
use kruise_agent_sim::{PACE, SimulatedNode, settings};
use kruise_runtime::{Client, Clock, client};
use kruise_sim::runtime::Fault;
use tokio::{sync::watch, time::sleep};

use self::runtime::Runtime;
use super::{
    cluster::Cluster,
    network::link::{self, PATIENCE},
    process::{Process, ProcessId},
    random::{Purpose, Random},
};

/// How agents are set up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setup {
    /// An agent dies at this share of the stops of containers, in percent.
    pub dying: u8,
}

/// Starts the agents of these nodes, which last as long as the play.
pub fn attend(cluster: &Arc<Cluster>, nodes: impl IntoIterator<Item = String>, setup: Setup) {
    cluster.look(|state| state.agents.dying = setup.dying);
    for node in nodes {
        tokio::spawn(supervise(cluster.clone(), node));
    }
}

/// The agent of a node dies, and none starts until it is not away any more.
pub fn set_away(cluster: &Arc<Cluster>, node: &str, is_away: bool) {
    cluster.look(|state| state.agents.set_away(node, is_away));
    if is_away {
        die(cluster, node);
    }
}

/// The agent of a node dies, if one runs. Another one starts.
pub fn die(cluster: &Arc<Cluster>, node: &str) -> bool {
    cluster.look(|state| {
        let process = state.agents.process(node);
        let process = process.filter(|process| !state.is_dead(*process));
        if let Some(process) = process {
            state.kill(process);
            state.counters.fired("agent died");
        }
        process.is_some()
    })
}

/// Something goes wrong with the runtime of a node, or is put right again. False if that means nothing now.
pub fn break_runtime(cluster: &Arc<Cluster>, node: &str, fault: Fault) -> bool {
    let is_away = fault == Fault::Away;
    cluster.with(|state| {
        let has_effect = state.world.inject_runtime_fault(node, fault);
        if has_effect && is_away {
            state.agents.disconnect(node);
        }
        has_effect
    })
}

/// Starts the agent of a node again and again, for ever.
async fn supervise(cluster: Arc<Cluster>, node: String) {
    let mut random = Random::new(cluster.look(|state| state.random.draw()), Purpose::AGENTS);
    loop {
        let mut away = cluster.look(|state| state.agents.is_away(&node));
        // This fails only if the sender is gone, and it stays until the end of the play.
        let _ = away.wait_for(|is_away| !*is_away).await;
        let id = cluster.look(|state| {
            let id = state.agents.start(&node);
            state.processes.insert(id, Process::new());
            id
        });
        run(&cluster, id, &node, random.draw()).await;
        sleep(Duration::from_millis(random.between(200, 4_000))).await;
    }
}

/// Runs one process until it dies.
async fn run(cluster: &Arc<Cluster>, id: ProcessId, node: &str, seed: u64) {
    let Some(mut death) = cluster.look(|state| state.processes.get(&id).map(Process::death)) else {
        return;
    };
    // It is never asked to end.
    let (_stop, stopped) = watch::channel(false);
    let process = kruise_agent::process(settings(node), host(cluster, id, node, seed), stopped);
    let life = tokio::spawn(process);
    let abort = life.abort_handle();
    let ended = tokio::select! {
        biased;
        _ = death.wait_for(|dead| *dead) => "died".to_owned(),
        ended = life => format!("ended: {ended:?}"),
    };
    abort.abort();
    cluster.look(|state| {
        let at = cluster.start.elapsed();
        state.trace.note(at, &format!("{id} of {node} {ended}"));
        state.kill(id);
    });
}

fn host(cluster: &Arc<Cluster>, id: ProcessId, node: &str, seed: u64) -> Host {
    let settings = client::Settings {
        user_agent: "kruise-daemon".into(),
        timeout: PATIENCE,
        rate: Some(PACE),
        host: "sim".into(),
        observer: None,
        clock: Clock::starting_at(cluster.look(|state| state.now())),
    };
    let random = std::sync::Mutex::new(Random::new(seed, Purpose::AGENTS));
    let jitter = move || {
        let mut random = random.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        random.draw()
    };
    Host {
        client: Client::new(link::client(cluster, id), settings),
        node: Arc::new(SimulatedNode::new(node, Runtime::new(cluster, id, node, seed))),
        pods: PodNetwork::Absent,
        jitter: Arc::new(jitter),
    }
}
