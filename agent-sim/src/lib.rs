//! The container runtime of a simulated node, as the agent that is shipped calls it.
//!
//! `kruise_agent` calls a runtime through [`ContainerRuntime`]; the runtimes of [`kruise_sim`] take calls as data.
//! This crate translates between the two, for whoever runs agents on a simulation. How a call gets there, and how
//! its answer comes back, is up to the [`Caller`]: in real time, or under a virtual clock with faults.
//!
//! Invariants: each call ends within the time limit that a client of a socket has ([`Limits`]), and to drop it is
//! to cancel it. An answer that belongs to another call is an error, never a panic.

mod answers;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cri::{
    Connection, Container, ContainerStatus, Error, Exec, Filesystems, Image, Limits, Output, Pull, Version,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use kruise_agent::{Call as Answered, ContainerRuntime, Failure, Filesystem, Node, Settings};
use kruise_sim::runtime::{self as sim, Answer, Call};
use tokio::sync::watch;
use tokio::time::timeout;

/// Where the runtime of a simulated node is, in messages.
const SOCKET: &str = "/run/containerd/containerd.sock";
/// A path where nothing is: no credentials of this machine are used.
const NOWHERE: &str = "/nonexistent";
/// Requests a second, and at once, as agents have by default.
pub const PACE: (f64, u32) = (20.0, 30);
/// Share of the disk that stays free, in percent, by default.
const MIN_FREE_PERCENT: u8 = 10;

/// Makes calls of the runtime of one node.
pub trait Caller: Send + Sync + 'static {
    /// Makes a call, and waits for its answer, however long that takes. Dropping the future cancels the call.
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Answer, sim::Error>>;

    /// Counts how often the runtime has ended, and with it the connection of those who call it.
    fn ends(&self) -> watch::Receiver<u64>;
}

/// The settings of an agent on a simulated node: what flags default to, without addresses, sockets and credentials
/// of this machine, and with what feature gates switch on switched off.
pub fn settings(node: &str) -> Settings {
    Settings {
        node: node.to_owned(),
        kubeconfig: None,
        addr: None,
        pace: PACE,
        sockets: Vec::new(),
        plugin_config: NOWHERE.into(),
        plugin_folder: NOWHERE.into(),
        home: None,
        max_pulls: None,
        min_free_percent: MIN_FREE_PERCENT,
        watches_pods: false,
        env_from_metadata: false,
        runs_probes: false,
    }
}

/// A node with one runtime.
pub struct SimulatedNode(Arc<dyn ContainerRuntime>);

impl SimulatedNode {
    /// A node whose runtime this calls. `name` is for logs.
    pub fn new(name: &str, caller: impl Caller) -> Self {
        Self(Arc::new(Runtime {
            node: name.to_owned(),
            caller,
            limits: Limits::default(),
        }))
    }
}

impl Node for SimulatedNode {
    fn candidates(&self) -> Vec<(String, Arc<dyn ContainerRuntime>)> {
        vec![(SOCKET.to_owned(), self.0.clone())]
    }

    fn places(&self) -> String {
        SOCKET.to_owned()
    }
}

struct Runtime<C> {
    node: String,
    caller: C,
    limits: Limits,
}

impl<C> fmt::Debug for Runtime<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("node", &self.node)
            .finish_non_exhaustive()
    }
}

impl<C: Caller> Runtime<C> {
    /// Makes a call, and waits for its answer within a limit.
    async fn call(&self, call: Call, limit: Duration) -> Result<Answer, Error> {
        match timeout(limit, self.caller.call(call)).await {
            Ok(answer) => answer.map_err(answers::error),
            Err(_) => Err(Error::TimedOut(format!(
                "no answer within {} s from {SOCKET}",
                limit.as_secs_f32()
            ))),
        }
    }
}

impl<C: Caller> ContainerRuntime for Runtime<C> {
    fn version(&self) -> Answered<'_, Version> {
        async {
            let answer = self.call(Call::Version, self.limits.containers).await?;
            answers::version(answer)
        }
        .boxed()
    }

    fn connection(&self) -> Connection {
        Connection::counted(self.caller.ends())
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
        // Whole seconds, as the interface has them.
        let more = u64::from(grace.subsec_nanos() > 0);
        let grace = Duration::from_secs(grace.as_secs().saturating_add(more));
        let call = Call::StopContainer {
            container: id.to_owned(),
            grace,
        };
        let limit = grace.saturating_add(self.limits.stop);
        async move { self.call(call, limit).await.map(drop) }.boxed()
    }
}

#[cfg(test)]
mod tests;
