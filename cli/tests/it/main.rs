//! `kubectl-kruise` as people and kubectl run it: command in, text and exit code out.

#![allow(clippy::disallowed_methods, reason = "processes live in real time")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

#[allow(dead_code, reason = "it is that of the tests of the manager's executable")]
#[path = "../../../kruise/tests/it/api_server.rs"]
mod api_server;
mod bundle;
mod command;
mod completion;
mod errors;
mod explain;
mod inject;
mod kubeconfig;
