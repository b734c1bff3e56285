//! What the planners of images on nodes must do, written from the requirements and not from the planners.
//!
//! `world` is a small cluster that applies plans as a server would, with agents that report when a test says so.
//! `cases` are fixed examples with their plans. In the files that have the name of a kind, and in `pull_secrets`,
//! all controllers run until none has anything to do; `probes`, `containerrecreaterequest` and `sidecarterminator`
//! have worlds of their own. `takeover` are objects that OpenKruise stored, and `properties` are random histories.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::too_many_lines
)]

mod cases;
mod containerrecreaterequest;
mod imagelistpulljob;
mod imagepulljob;
mod nodeimage;
mod order;
mod probes;
mod properties;
mod pull_secrets;
mod sidecarterminator;
mod takeover;
mod world;
