//! The runtime of a simulated node, as its agent calls it: with deaths of the agent at stops.

use std::sync::{Arc, Mutex, PoisonError};

use futures::{FutureExt, future::BoxFuture};
use kruise_agent_sim::Caller;
use kruise_sim::runtime::{Answer, Call, CallId, Error};
use tokio::sync::watch;

use crate::engine::{
    cluster::{Cluster, State},
    process::ProcessId,
    random::{Purpose, Random},
    runtimes::{RuntimeCall, Waiting},
};

/// Makes the random numbers for deaths differ from those of the agent itself.
const DEATHS: u64 = 0x5707;

/// The runtime of a node, for one process.
pub struct Runtime {
    cluster: Arc<Cluster>,
    process: ProcessId,
    node: String,
    /// Decides at which stops the process dies.
    deaths: Mutex<Random>,
}

/// When a process dies at a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Death {
    Never,
    /// The runtime has got the request, and has not answered.
    Requested,
    /// The runtime has answered.
    Answered,
}

/// A call to a runtime. Dropping it before its answer cancels the call.
struct Made<'a> {
    cluster: &'a Cluster,
    id: CallId,
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        self.cluster.look(|state| {
            if state.agents.give_up(self.id) {
                state.world.cancel_runtime_call(self.id);
            }
        });
    }
}

impl Runtime {
    /// That of a node.
    pub fn new(cluster: &Arc<Cluster>, process: ProcessId, node: &str, seed: u64) -> Self {
        Self {
            cluster: cluster.clone(),
            process,
            node: node.to_owned(),
            deaths: Mutex::new(Random::new(seed ^ DEATHS, Purpose::AGENTS)),
        }
    }

    /// Makes a call, and waits for its answer. A process that is dead makes no call.
    async fn answered(&self, call: Call) -> Result<Answer, Error> {
        let made = self.cluster.with(|state| {
            let is_dead = state.is_dead(self.process);
            (!is_dead).then(|| state.call(self.process, &self.node, call))
        });
        let Some((id, answer)) = made else {
            return std::future::pending().await;
        };
        let _made = Made {
            cluster: &self.cluster,
            id,
        };
        let broken = |_| Err(Error::Unavailable("the connection broke".into()));
        answer.await.unwrap_or_else(broken)
    }

    fn death(&self) -> Death {
        let percent = self.cluster.look(|state| state.agents.dying);
        let mut deaths = self.deaths.lock().unwrap_or_else(PoisonError::into_inner);
        if !deaths.percent(percent) {
            Death::Never
        } else if deaths.percent(50) {
            Death::Requested
        } else {
            Death::Answered
        }
    }

    fn die(&self) {
        self.cluster.look(|state| {
            state.counters.fired("agent died at a stop");
            state.kill(self.process);
        });
    }

    async fn stopped(&self, call: Call) -> Result<Answer, Error> {
        let death = self.death();
        let stop = self.answered(call);
        let mut stop = std::pin::pin!(stop);
        if death == Death::Requested {
            // The first poll makes the call.
            let _answer = futures::poll!(stop.as_mut());
            self.die();
            return std::future::pending().await;
        }
        let answer = stop.await;
        if death == Death::Answered {
            self.die();
            return std::future::pending().await;
        }
        answer
    }
}

impl State {
    /// An agent calls the runtime of its node.
    fn call(&mut self, process: ProcessId, node: &str, call: Call) -> (CallId, Waiting) {
        let at = self.elapsed();
        self.trace.note(at, &format!("{process} calls {node}: {call:?}"));
        let seen = RuntimeCall {
            process,
            node,
            call: &call,
            now: self.now(),
        };
        if self.is_judged() && self.violation.is_none() {
            let verdict = self.judges.judge_call(&seen, &self.mirror);
            self.found(verdict);
        }
        let id = self.world.call_runtime(node, call);
        (id, self.agents.wait(id))
    }
}

impl Caller for Runtime {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Answer, Error>> {
        match call {
            Call::StopContainer { .. } => self.stopped(call).boxed(),
            call => self.answered(call).boxed(),
        }
    }

    fn ends(&self) -> watch::Receiver<u64> {
        self.cluster.look(|state| state.agents.connection(&self.node))
    }
}
