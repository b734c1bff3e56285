//! The swap of OpenKruise for this program: the check before it, and rewriting what is stored.

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod migrate;
pub mod preflight;
