//! What controllers are made of: registrations, configuration, caches that several of them read, lookups of reviews, and the
//! engine of explanations.
//!
//! This crate has no list of controllers. Whoever needs one is given it: the flags of a process, the rights of an
//! installation, the facts that a server is asked for.

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod caches;
pub mod command;
pub mod config;
mod dependants;
pub mod explain;
pub mod flags;
pub mod gates;
pub mod invalid_spec;
pub mod jitter;
pub mod json;
pub mod leader;
pub mod listed;
pub mod logging;
pub mod lookup;
pub mod output;
pub mod pages;
pub mod parsed;
#[cfg(any(test, feature = "testing"))]
pub mod played;
pub mod profile;
pub mod registration;
pub mod settings;
pub mod templates;
pub mod workloads;
