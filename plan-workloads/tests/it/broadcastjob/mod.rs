//! What the BroadcastJob planner must do, written from the requirements and not from the planner.

mod cases;
mod pods;
mod properties;
mod takeover;
mod world;
