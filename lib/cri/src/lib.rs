//! A client of the Kubernetes container runtime interface, version 1: what a node agent asks of containerd, CRI-O or
//! cri-dockerd, over the unix socket that the kubelet uses too.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::path::Path;
//! use std::time::Duration;
//!
//! use cri::{Auth, Client, Endpoint, Pull, candidates};
//!
//! // Where the node's /run is visible to this process.
//! let run = Path::new("/hostvarrun");
//! let endpoint = candidates(run).into_iter().find(|endpoint| endpoint.path().exists());
//! let client = Client::new(endpoint.unwrap_or_else(|| Endpoint::under(run, "containerd.sock")));
//!
//! // Nothing was connected yet: the first call does it, and so does the first one after the runtime restarted.
//! let runtime = client.version().await?;
//! println!("{} {}", runtime.name, runtime.version);
//!
//! if client.image("docker.io/library/nginx:1").await?.is_none() {
//!     let pull = Pull {
//!         image: "docker.io/library/nginx:1",
//!         auth: Some(Auth::Basic { username: "me", password: "secret" }),
//!         ..Pull::default()
//!     };
//!     // Dropping this future cancels the pull in the runtime.
//!     client.pull(&pull, Duration::from_mins(10)).await?;
//! }
//! for container in client.containers_of_pod("5b6a0a5e-0d8c-4f0a-9f0c-2f1b1c3d4e5f").await? {
//!     let status = client.container(&container.id).await?;
//!     println!("{} ended with {}: {}", container.name, status.exit_code, status.reason);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//! * **Bounded in time.** Every call has a time limit, which the runtime learns too. Limits of short calls are in
//!   [`Limits`]; a pull, an exec and a stop take theirs from the caller.
//! * **Cancelled by dropping.** A dropped future resets its stream, and the runtime ends what it does for it.
//! * **Bounded in memory.** An answer beyond [`Limits::message_bytes`] is [`Error::TooLarge`]. Lists are decoded
//!   while they arrive, one item at a time, and of a command's output the beginning is kept: an answer takes no
//!   more memory than its longest item and what the caller keeps.
//! * **Reconnects.** A call that finds no runtime is [`Error::Unavailable`]; a later one connects anew. The
//!   connection stays open between calls, so that [`Connection`] tells when it ends.
//! * **No answer panics.** What is not gRPC, not protobuf or not complete is [`Error::Malformed`]. Fields that are
//!   newer than this crate are skipped.
//!
//! # Why neither tonic nor generated code
//! The crates that generate the interface's code need `protoc` on every machine that builds. Nine calls with a message
//! each way need a table of field numbers and two hundred lines of gRPC. These lines tell the runtime's errors
//! from those of reading its answer, decode lists while they arrive, and do not panic on a malformed
//! `grpc-status-details-bin`, as tonic 0.14 does. The field numbers are held by messages that `protoc` encoded
//! (`tests/it/golden.txt`), and by a test with a containerd.
//!
//! # What is not here
//! Calls that make or remove something: pods, containers and images belong to the kubelet. Retries: the caller
//! knows when to try again.

mod client;
mod containers;
mod endpoint;
mod error;
mod grpc;
mod images;
mod messages;

#[cfg(feature = "fuzzing")]
pub mod fuzzing;

pub use client::{Client, Connection, Limits, Version};
pub use containers::{Container, ContainerStatus, Exec, Output, State, labels};
pub use endpoint::{Endpoint, EndpointError, candidates};
pub use error::Error;
pub use images::{Auth, Filesystem, Filesystems, Image, Pull};
