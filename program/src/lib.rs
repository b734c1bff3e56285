//! What every executable of the project has: its flags and feature gates, its log, its output, and how it
//! ends.
//!
//! It knows nothing of controllers, because the agent of a node has none.

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod command;
pub mod gates;
pub mod logging;
pub mod output;
