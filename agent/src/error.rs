//! Why an agent ends.

use std::io;
use std::net::SocketAddr;

use kruise_runtime::client::ConnectError;

/// Something that only a restart, or other settings, can repair.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no usable connection to the API server.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The address for metrics and health cannot be listened on.
    #[error("cannot listen on {address}; change --addr: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// A task panicked, so that an answer is missing.
    #[error("a task of the agent panicked: {0}")]
    Panicked(tokio::task::JoinError),
}
