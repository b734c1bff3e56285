//! Scenarios of the production manager.
//!
//! `KRUISE_DST_SECONDS` plays as many random scenarios as fit into that time, instead of always as many.

mod cases;
mod image_pulls;
mod injected_bugs;
mod scenarios;
