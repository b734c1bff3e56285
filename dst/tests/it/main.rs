//! Scenarios of the production manager.
//!
//! `KRUISE_DST_SECONDS` is how long random scenarios are played, 60 by default.

mod cases;
mod image_pulls;
mod injected_bugs;
mod scenarios;
