//! The commands of people, who run them with their own credentials: `kubectl-kruise`.
//!
//! [`root`] is its command line. The executable `kruise` has some of these commands as well, under the same
//! names.
//!
//! | module | what |
//! |---|---|
//! | [`connection`] | which cluster, as kubectl's flags choose it |
//! | [`target`], [`resources`] | what a command line names |
//! | [`cluster`] | reads by name, lists |
//! | [`report`], [`failure`] | what is printed, and errors as people read them |
//! | [`explain`], [`inject`], [`restart`], [`bundle`], [`version`], [`completion`] | a command each |
//! | [`usage`], [`reference`] | what is wrong with a command line; all commands as a page |

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod bundle;
pub mod cluster;
pub mod completion;
pub mod connection;
pub mod explain;
pub mod failure;
pub mod inject;
pub mod reference;
pub mod report;
pub mod resources;
pub mod restart;
pub mod root;
pub mod run;
pub mod target;
pub mod usage;
pub mod version;
