//! Scenarios of the production manager.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "everything here is a test; some take real time"
)]

mod cases;
mod image_pulls;
mod injected_bugs;
mod oracles;
mod scenarios;
