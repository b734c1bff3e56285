//! Deterministic simulation: the production manager on an embedded Kubernetes, on one thread, under a virtual clock,
//! with one seed for all chance.
//!
//! What runs is the production code: informers, queue, gate, planners, workers, executor, lease, events, status
//! writer, and the handlers of the webhooks, conversion among them, wired by `kruise::manager::process`. What does not
//! run is what lies between a process and its machine: sockets, TLS, certificates, signals, the command line.
//!
//! A history says what users do and what goes wrong ([`history`]). While it is played, oracles judge every write that
//! the API accepts ([`oracle`]); after its end everything must come to where the specification says, and then nobody
//! may write any more. Each history is played twice, and both must be the same to the last byte of
//! every request and answer.

#![allow(
    clippy::indexing_slicing,
    reason = "JSON is read by index, which gives null for what is not there; arrays have a place for each resource"
)]

pub mod boot;
pub mod campaign;
pub mod cluster;
pub mod deployment;
pub mod enough;
pub mod enumerate;
pub mod history;
pub mod hooks;
pub mod mirror;
pub mod network;
pub mod object;
pub mod oracle;
pub mod panics;
#[cfg(feature = "planted")]
pub mod planted;
pub mod play;
pub mod process;
pub mod random;
pub mod report;
pub mod shrink;
pub mod sidecars;
pub mod user;
pub mod webhooks;
