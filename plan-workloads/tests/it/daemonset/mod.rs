//! What the DaemonSet planner must do, written from the requirements and not from the planner.

mod cases;
mod pods;
mod properties;
mod takeover;
pub(crate) mod world;

pub(crate) use world::World;
