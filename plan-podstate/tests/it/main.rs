//! What the planner of PersistentPodStates must do, written from the requirements and not from the planner.
//!
//! `world` is a small cluster that carries plans out as a server would. In `scenarios` and `generated` fixed things
//! happen, and the controller runs until it has nothing to do. `takeover` are objects as OpenKruise writes them,
//! and `properties` are random histories.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::too_many_lines
)]

mod generated;
mod properties;
mod scenarios;
mod takeover;
mod world;
