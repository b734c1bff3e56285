//! What the StatefulSet planner must do, written from the requirements and not from the planner.

mod cases;
mod lossless;
mod oracle;
mod properties;
mod reports;
mod takeover;
pub(crate) mod world;

pub(crate) use world::World;
