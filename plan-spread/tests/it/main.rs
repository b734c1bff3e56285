//! What the planner of WorkloadSpreads must do, written from the requirements and not from the planner.
//!
//! `world` is a small cluster: a workload, its pods, nodes, a server, and the webhook, which counts with the functions
//! that it has in common with the controller. In `scenarios`, `existing`, `adaptive` and `refusals` fixed things
//! happen. `takeover` are objects that OpenKruise stored, and `properties` are random histories.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::too_many_lines
)]

mod adaptive;
mod existing;
mod properties;
mod refusals;
mod scenarios;
mod takeover;
mod targets;
mod world;
