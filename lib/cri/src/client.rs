//! The client: one runtime, one connection.

use std::future::pending;
use std::time::Duration;

use tokio::sync::watch;

use crate::grpc::{Channel, Whole};
use crate::messages::{VERSION, VersionRequest, VersionResponse};
use crate::{Endpoint, Error};

/// How long short calls may take, and how large an answer may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Calls about the runtime and its containers. What a pull and an exec may take is said by their caller; the
    /// runtime has this long beyond it to answer.
    pub containers: Duration,
    /// How long a container may take to end once it is killed: a stop has this long beyond the time that its caller
    /// grants.
    pub stop: Duration,
    /// Calls about images.
    pub images: Duration,
    /// An answer's message, in bytes. Runtimes send no more than 16 MiB.
    pub message_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            containers: Duration::from_secs(5),
            // As kubelets wait.
            stop: Duration::from_mins(2),
            images: Duration::from_secs(30),
            message_bytes: 16 << 20,
        }
    }
}

/// A client of one runtime. Clones share the connection.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) channel: Channel,
    pub(crate) limits: Limits,
}

/// Which runtime it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// `containerd`, `cri-o` or `docker`: what the ids of its containers begin with in the status of a pod.
    pub name: String,
    /// The runtime's own version.
    pub version: String,
    /// The version of the interface that it speaks: `v1`.
    pub api_version: String,
}

/// The end of a client's connection, which a runtime that ends brings about.
#[derive(Clone, Debug)]
pub struct Connection(watch::Receiver<u64>);

impl Connection {
    /// A connection whose ends this counts, for runtimes that are simulated.
    pub fn counted(ends: watch::Receiver<u64>) -> Self {
        Self(ends)
    }

    /// Resolves when a connection has ended since this value was made or this was last called. Why is not known: a call
    /// tells whether the runtime is there. Never resolves without a connection, nor after the last client was dropped.
    pub async fn ended(&mut self) {
        if self.0.changed().await.is_err() {
            pending::<()>().await;
        }
    }
}

impl Client {
    /// A client with the default limits. Connects nothing.
    pub fn new(endpoint: Endpoint) -> Self {
        Self::with_limits(endpoint, Limits::default())
    }

    /// A client with these limits. Connects nothing.
    pub fn with_limits(endpoint: Endpoint, limits: Limits) -> Self {
        Self {
            channel: Channel::new(endpoint, limits.message_bytes),
            limits,
        }
    }

    /// Where it connects to.
    pub fn endpoint(&self) -> &Endpoint {
        self.channel.endpoint()
    }

    /// Watches the connection, from now on. It stays open between calls.
    pub fn connection(&self) -> Connection {
        Connection(self.channel.ended())
    }

    /// Which runtime answers, and that it speaks version 1 of the interface.
    ///
    /// # Errors
    /// [`Error::Unimplemented`] if it does not; see [`Error`].
    pub async fn version(&self) -> Result<Version, Error> {
        let request = VersionRequest { version: "v1".into() };
        let limit = self.limits.containers;
        let sink = Whole::<VersionResponse>::new();
        let found = self.channel.call(VERSION, &request, limit, sink).await?;
        if found.name.is_empty() {
            return Err(Error::Malformed("the runtime has no name".into()));
        }
        Ok(Version {
            name: found.name,
            version: found.version,
            api_version: found.api_version,
        })
    }
}
