//! The runtime of a simulated node, as its agent calls it.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cri::{
    Connection, Container, ContainerStatus, Error, Exec, Filesystems, Image, Limits, Output, Pull, Version,
};
use futures::{FutureExt, future::BoxFuture};
use kruise_agent::{Call as Answered, ContainerRuntime, Failure, Filesystem, Node};
use kruise_sim::runtime::{Answer, Call, CallId};
use tokio::time::timeout;

use super::answers;
use crate::engine::{
    cluster::{Cluster, State},
    process::ProcessId,
    random::{Purpose, Random},
    runtimes::{RuntimeCall, Waiting},
};

/// Where the runtime is.
const SOCKET: &str = "/run/containerd/containerd.sock";
/// Makes the random numbers for deaths differ from those of the agent itself.
const DEATHS: u64 = 0x5707;

/// The only runtime of a node, for one process.
pub struct Runtimes(Arc<Runtime>);

struct Runtime {
    cluster: Arc<Cluster>,
    process: ProcessId,
    node: String,
    limits: Limits,
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

impl Runtimes {
    /// That of a node.
    pub fn new(cluster: &Arc<Cluster>, process: ProcessId, node: &str, seed: u64) -> Self {
        Self(Arc::new(Runtime {
            cluster: cluster.clone(),
            process,
            node: node.to_owned(),
            limits: Limits::default(),
            deaths: Mutex::new(Random::new(seed ^ DEATHS, Purpose::AGENTS)),
        }))
    }
}

impl Node for Runtimes {
    fn candidates(&self) -> Vec<(String, Arc<dyn ContainerRuntime>)> {
        let client: Arc<dyn ContainerRuntime> = self.0.clone();
        vec![(SOCKET.to_owned(), client)]
    }

    fn places(&self) -> String {
        SOCKET.to_owned()
    }
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
    /// Makes a call, and waits for its answer within a limit. A process that is dead makes no call.
    async fn call(&self, call: Call, limit: Duration) -> Result<Answer, Error> {
        let made = self.cluster.with(|state| {
            let is_dead = state.is_dead(self.process);
            (!is_dead).then(|| state.call(self.process, &self.node, call))
        });
        let Some((id, answer)) = made else {
            return std::future::pending().await;
        };
        let made = Made {
            cluster: &self.cluster,
            id,
        };
        let answered = timeout(limit, answer).await;
        drop(made);
        match answered {
            Ok(Ok(answer)) => answer.map_err(answers::error),
            Ok(Err(_)) => Err(Error::Unavailable("the connection broke".into())),
            Err(_) => Err(Error::TimedOut(format!(
                "no answer within {} s from {SOCKET}",
                limit.as_secs_f32()
            ))),
        }
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

    async fn stopped(&self, id: &str, grace: Duration) -> Result<(), Error> {
        // Whole seconds, as the interface has them.
        let more = u64::from(grace.subsec_nanos() > 0);
        let grace = Duration::from_secs(grace.as_secs().saturating_add(more));
        let call = Call::StopContainer {
            container: id.to_owned(),
            grace,
        };
        let limit = grace.saturating_add(self.limits.stop);
        let death = self.death();
        let stop = self.call(call, limit);
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
        answer.map(drop)
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
            self.violation = self.judges.judge_call(&seen, &self.mirror);
        }
        let id = self.world.call_runtime(node, call);
        (id, self.agents.wait(id))
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("node", &self.node)
            .finish_non_exhaustive()
    }
}

impl ContainerRuntime for Runtime {
    fn version(&self) -> Answered<'_, Version> {
        async {
            let answer = self.call(Call::Version, self.limits.containers).await?;
            answers::version(answer)
        }
        .boxed()
    }

    fn connection(&self) -> Connection {
        let ends = self.cluster.look(|state| state.agents.connection(&self.node));
        Connection::counted(ends)
    }

    fn filesystems(&self) -> Answered<'_, Filesystems> {
        async {
            let answer = self.call(Call::ImageFsInfo, self.limits.images).await?;
            answers::filesystems(answer)
        }
        .boxed()
    }

    fn room(&self) -> BoxFuture<'_, Result<Filesystem, Failure>> {
        async {
            let answer = self.call(Call::ImageFsInfo, self.limits.images).await;
            answer.and_then(answers::room).map_err(|error| match error {
                Error::Unavailable(problem) => Failure::Unavailable(problem.into()),
                other => Failure::Failed(other.to_string().into()),
            })
        }
        .boxed()
    }

    fn images<'a>(&'a self, each: &'a mut (dyn FnMut(Image) + Send)) -> Answered<'a, ()> {
        async move {
            let answer = self.call(Call::ListImages, self.limits.images).await?;
            answers::images(answer)?.for_each(each);
            Ok(())
        }
        .boxed()
    }

    fn pull<'a>(&'a self, pull: &'a Pull<'a>, limit: Duration) -> Answered<'a, String> {
        async move {
            let answer = self.call(Call::PullImage(answers::pull(pull)), limit).await?;
            answers::pulled(answer)
        }
        .boxed()
    }

    fn containers<'a>(
        &'a self,
        labels: &'a [(&'a str, &'a str)],
        each: &'a mut (dyn FnMut(Container) + Send),
    ) -> Answered<'a, ()> {
        async move {
            let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
            let call = Call::ListContainers(labels.iter().map(owned).collect());
            let answer = self.call(call, self.limits.containers).await?;
            answers::containers(answer)?.for_each(each);
            Ok(())
        }
        .boxed()
    }

    fn container<'a>(&'a self, id: &'a str) -> Answered<'a, ContainerStatus> {
        async move {
            let call = Call::ContainerStatus(id.to_owned());
            let answer = self.call(call, self.limits.containers).await?;
            answers::status(answer)
        }
        .boxed()
    }

    fn exec<'a>(&'a self, exec: &'a Exec<'a>) -> Answered<'a, Output> {
        async move {
            let limit = exec.timeout.saturating_add(self.limits.containers);
            let answer = self.call(Call::ExecSync(answers::exec(exec)), limit).await?;
            answers::output(answer, exec.output_bytes)
        }
        .boxed()
    }

    fn stop<'a>(&'a self, id: &'a str, grace: Duration) -> Answered<'a, ()> {
        self.stopped(id, grace).boxed()
    }
}
