//! What the planner of UnitedDeployments must do, written from the requirements and not from the planner.
//!
//! `world` is a small cluster that carries plans out as a server would, with controllers of the workloads and nodes. In
//! `scenarios`, `adaptive` and `children` fixed things happen, and the controller runs until it has nothing to do.
//! `takeover` are objects that OpenKruise stored, and `properties` are random histories.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::too_many_lines
)]

mod adaptive;
mod children;
mod properties;
mod scenarios;
mod takeover;
mod world;
