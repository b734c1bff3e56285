//! What SidecarSet's planner must do, written from the requirements and not from the planner.
//!
//! `world` is a small cluster that applies plans as a server and nodes would. `limits`, `history` and `hot` are short
//! stories, `better` has one for each place where OpenKruise loses data or sticks, `takeover` begins with stored
//! objects, and `repair` is about pods without sidecars, `properties` are random histories, judged by arithmetic of
//! their own.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::too_many_lines
)]

mod better;
mod budgets;
mod history;
mod hot;
mod limits;
mod properties;
mod repair;
mod takeover;
mod world;
