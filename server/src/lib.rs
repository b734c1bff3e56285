//! The admission server's side of the program: what the API server must know about our webhooks.
//!
//! The crate knows no workload kinds. Decisions are pure functions over JSON, so that a pass which has nothing to
//! change can be recognised before anything is written.

pub mod configuration;
pub mod issue;
pub mod renewal;
pub mod review;
