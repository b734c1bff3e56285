//! The container runtimes of a node, as the agent calls them.
//!
//! An agent calls a runtime through [`ContainerRuntime`] only. On a node that is a client of the runtime's socket
//! ([`cri::Client`]); a simulation has runtimes of its own. What the agent makes of answers and errors, and when it
//! looks for runtimes, is the same for both.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cri::{
    Connection, Container, ContainerStatus, Endpoint, Error, Exec, Filesystems, Image, Output, Pull, Version,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use kruise_agent_core::{Failure, Filesystem};

use crate::effects::disk;

/// The answer to a call.
pub type Call<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// A client of a runtime, which clones share.
pub(crate) type Client = Arc<dyn ContainerRuntime>;

/// What a node has.
pub trait Node: Send + Sync {
    /// The places where a runtime may be, in the order of preference, each with a client that has not connected
    /// yet. Places where certainly is none are left out.
    fn candidates(&self) -> Vec<(String, Arc<dyn ContainerRuntime>)>;

    /// All places, for people.
    fn places(&self) -> String;
}

/// A container runtime. The methods are calls of the container runtime interface with the promises of
/// [`cri::Client`]: each ends within its time limit, and to drop it is to cancel it.
pub trait ContainerRuntime: fmt::Debug + Send + Sync {
    /// Which runtime it is.
    fn version(&self) -> Call<'_, Version>;

    /// The connection that calls share.
    fn connection(&self) -> Connection;

    /// The file systems with images and containers.
    fn filesystems(&self) -> Call<'_, Filesystems>;

    /// How large the file system with the images is, and how full. The interface does not tell.
    fn room(&self) -> BoxFuture<'_, Result<Filesystem, Failure>>;

    /// Passes every image of the node.
    fn images<'a>(&'a self, each: &'a mut (dyn FnMut(Image) + Send)) -> Call<'a, ()>;

    /// Pulls an image; returns the runtime's id of it.
    fn pull<'a>(&'a self, pull: &'a Pull<'a>, limit: Duration) -> Call<'a, String>;

    /// Passes every container that has these labels, ended ones included.
    fn containers<'a>(
        &'a self,
        labels: &'a [(&'a str, &'a str)],
        each: &'a mut (dyn FnMut(Container) + Send),
    ) -> Call<'a, ()>;

    /// The container with this id.
    fn container<'a>(&'a self, id: &'a str) -> Call<'a, ContainerStatus>;

    /// Runs a command in a container.
    fn exec<'a>(&'a self, exec: &'a Exec<'a>) -> Call<'a, Output>;

    /// Stops a container.
    fn stop<'a>(&'a self, id: &'a str, grace: Duration) -> Call<'a, ()>;
}

impl ContainerRuntime for cri::Client {
    fn version(&self) -> Call<'_, Version> {
        self.version().boxed()
    }

    fn connection(&self) -> Connection {
        self.connection()
    }

    fn filesystems(&self) -> Call<'_, Filesystems> {
        self.filesystems().boxed()
    }

    fn room(&self) -> BoxFuture<'_, Result<Filesystem, Failure>> {
        disk::room(self).boxed()
    }

    fn images<'a>(&'a self, each: &'a mut (dyn FnMut(Image) + Send)) -> Call<'a, ()> {
        self.fold_images((), move |(): &mut (), image| each(image))
            .boxed()
    }

    fn pull<'a>(&'a self, pull: &'a Pull<'a>, limit: Duration) -> Call<'a, String> {
        self.pull(pull, limit).boxed()
    }

    fn containers<'a>(
        &'a self,
        labels: &'a [(&'a str, &'a str)],
        each: &'a mut (dyn FnMut(Container) + Send),
    ) -> Call<'a, ()> {
        let pass = move |container| -> Option<()> {
            each(container);
            None
        };
        async move { self.containers_with(labels, pass).await.map(drop) }.boxed()
    }

    fn container<'a>(&'a self, id: &'a str) -> Call<'a, ContainerStatus> {
        self.container(id).boxed()
    }

    fn exec<'a>(&'a self, exec: &'a Exec<'a>) -> Call<'a, Output> {
        self.exec(exec).boxed()
    }

    fn stop<'a>(&'a self, id: &'a str, grace: Duration) -> Call<'a, ()> {
        self.stop(id, grace).boxed()
    }
}

/// The sockets of a node.
pub(crate) struct Sockets(pub(crate) Vec<Endpoint>);

impl Node for Sockets {
    fn candidates(&self) -> Vec<(String, Arc<dyn ContainerRuntime>)> {
        // One that cannot be looked at is tried, so that the error says why.
        let may_be_there = |socket: &&Endpoint| !matches!(socket.path().try_exists(), Ok(false));
        let client = |socket: &Endpoint| -> (String, Client) {
            (socket.to_string(), Arc::new(cri::Client::new(socket.clone())))
        };
        self.0.iter().filter(may_be_there).map(client).collect()
    }

    fn places(&self) -> String {
        let all: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        all.join(", ")
    }
}
