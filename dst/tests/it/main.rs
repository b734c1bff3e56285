//! Scenarios of the production manager.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "everything here is a test; some take real time, and JSON is read by index"
)]

mod cases;
mod image_pulls;
mod injected_bugs;
mod oracles;
mod scenarios;
