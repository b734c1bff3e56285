//! What controllers are made of: registrations, configuration, caches that several of them read, lookups of
//! reviews, and the engine of explanations.
//!
//! This crate contains no list of controllers. Callers pass in the registrations or limits that a function is about.

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod caches;
pub mod config;
mod dependants;
pub mod explain;
pub mod flags;
pub mod jitter;
pub mod json;
pub mod leader;
pub mod listed;
pub mod lookup;
pub mod pages;
#[cfg(any(test, feature = "testing"))]
pub mod played;
pub mod profile;
pub mod registration;
pub mod settings;
pub mod templates;
pub mod workloads;

pub use kruise_program::{command, gates, logging, output};
