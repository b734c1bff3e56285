//! Plays scenarios. Knows no kind: the subjects are handed in as a list.
//!
//! A scenario says what users do and which faults happen ([`scenario`]). While it is played ([`play`]), oracles
//! judge every write that the API accepts ([`oracles`]). At its end every object must be as its specification says,
//! and then nobody may write any more. A campaign plays each scenario twice, and both plays must be equal to the
//! last byte of every request and answer ([`campaign`]).
//!
//! The agents of nodes are those that are shipped, on simulated container runtimes ([`agents`]).
//!
//! Modules are listed from the bottom up: each uses only modules above it in this list.

pub mod agents;
pub mod alteration;
pub mod boot;
pub mod bug;
pub mod campaign;
pub mod cluster;
pub mod commands;
pub mod cost;
pub mod course;
pub mod enumerate;
pub mod faults;
pub mod forgery;
pub mod generate;
#[cfg(feature = "injected-bugs")]
pub mod injected;
pub mod leader;
pub mod liveness;
pub mod managers;
pub mod mirror;
pub mod network;
pub mod object;
pub mod oracles;
pub mod panics;
pub mod play;
pub mod process;
pub mod random;
pub mod registration;
pub mod report;
pub mod resource;
pub mod runtimes;
pub mod scenario;
pub mod selector;
pub mod shrink;
pub mod subject;
pub mod threads;
pub mod user;
pub mod verdict;
pub mod watching;
pub mod webhooks;
pub mod write;
