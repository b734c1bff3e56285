//! What Kubernetes knows about pod templates and volume claims, on raw JSON.
//!
//! * [`defaults`] fills in what the API server would fill in;
//! * [`validate`] finds what the API server would surely refuse;
//! * [`metadata_patch`] is the difference of two templates' metadata.
//!
//! Everything works on [`serde_json::Value`], so that fields newer than this crate survive.

pub mod defaults;
mod metadata;
pub mod validate;

pub use metadata::metadata_patch;
