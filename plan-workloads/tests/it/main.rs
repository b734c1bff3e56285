//! What the planners of workloads must do, written from the requirements and not from the planners. Those of
//! CloneSet are here, those of other kinds in the folders of their names.
//!
//! `world` is a small cluster that applies plans as a server and nodes would; `oracle` watches every write that reaches
//! it with arithmetic of its own. `vectors`, `cases`, `takeover` and `lossless` are fixed examples, `properties` are
//! random histories, `scripted` are chosen ones, and `scenario_tables` keeps the tables in `docs/scenarios` honest.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::too_many_lines
)]

mod advancedcronjob;
mod broadcastjob;
mod budgets;
mod cases;
mod daemonset;
mod ephemeraljob;
mod launch;
mod lossless;
mod node_names;
mod oracle;
mod outlook;
mod podunavailablebudget;
mod properties;
mod reports;
mod resources;
mod scenario_tables;
mod scripted;
mod statefulset;
mod takeover;
mod trials;
mod tutorial;
mod vectors;
mod world;
