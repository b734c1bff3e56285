//! Deterministic simulation: the production manager on an embedded Kubernetes, on one thread, under a virtual clock,
//! with one seed for all randomness.
//!
//! What runs is the production code: informers, queue, planners, workers, executor, lease, events, status writer, and
//! the handlers of the webhooks, conversion among them, wired by `kruise_manager::process`. What does not run is what
//! lies between a process and its machine: sockets, TLS, certificates, signals, the command line.
//!
//! [`engine`] plays scenarios and knows no kind. [`subjects`] has a folder for each kind: how users create and edit its
//! objects, and the oracles that judge what managers do to them, in the words of [`rules`].
#![allow(
    clippy::indexing_slicing,
    reason = "JSON is read by index, which gives null for what is absent; places of edits were checked when they were drawn"
)]

pub mod engine;
pub mod rules;
pub mod subjects;
