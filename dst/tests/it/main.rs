//! Scenarios of the production manager.
//!
//! `KRUISE_DST_SECONDS` is how long random scenarios are played, 60 by default.

mod cases;
mod scenarios;

#[cfg(feature = "injected-bugs")]
mod injected_bugs;
