//! The agent of a node as a process: `kruise-daemon`. [`kruise_agent_core::Agent`] decides; this crate
//! carries out.
//!
//! One loop ([`run`]) gives events to the agent and carries its effects out:
//!
//! ```text
//! watches of the API server ──┐                        ┌──> calls of the container runtime ──┐
//! the clock ──────────────────┼─> Agent::handle ─> effects ─> writes to the API server ──────┼─> answers, as events
//! answers ────────────────────┘                        └──> events, health, log              ┘
//! ```
//!
//! [`run`] is the process on a node, at the sockets of its runtimes. [`process`] is the same with network,
//! clock, randomness and runtimes of its caller: a simulation runs it.
//!
//! Invariants: every effect that has an answer is answered once, whatever happens to the runtime or the API
//! server, and within its time. Nothing ends the process but its stop signal, a mistake in its settings, and
//! a bug. One thread does everything; there is one copy of an object. A secret is kept for as long as an
//! attempt to pull takes, and is in no log.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod credentials;
mod detect;
mod effects;
mod error;
mod events;
mod flags;
mod health;
mod host;
mod jitter;
mod metrics;
mod probes;
mod requests;
mod run;
mod runtime;
mod served;
mod settings;
mod watches;

pub use error::Error;
pub use flags::FLAGS;
pub use host::{Host, Jitter, PodNetwork};
pub use kruise_agent_core::{Failure, Filesystem};
pub use run::{process, run};
pub use runtime::{Call, ContainerRuntime, Node};
pub use settings::{Settings, SettingsError};
