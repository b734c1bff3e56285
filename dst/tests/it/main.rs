//! Histories of the production manager.
//!
//! `KRUISE_DST_SECONDS` says how long random histories are played, 60 by default.

mod cases;
mod histories;
#[cfg(feature = "planted")]
mod planted;
