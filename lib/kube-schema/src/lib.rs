//! The shape of Kubernetes objects, on raw JSON.
//!
//! * [`table`] holds the built-in types; [`typed`] reads objects of them as a Go server would;
//! * [`protobuf`] reads objects of them that clients send in Kubernetes' binary encoding;
//! * [`patch`] applies JSON, merge and strategic merge patches;
//! * [`apply`] merges objects as server-side apply does, and keeps sets of fields;
//! * [`structural`] prunes and defaults custom resources;
//! * [`defaults`] fills in what the API server would fill into a pod template;
//! * [`validate`] finds what the API server would surely refuse;
//! * [`TypeMismatch`] is a value whose type is not that of its field;
//! * [`metadata_patch`] is the difference of two templates' metadata;
//! * [`weight`] says how much memory a text takes as a tree.
//!
//! Everything works on [`serde_json::Value`]; apart from [`typed`], which does what Go does, fields newer than this
//! crate survive.

pub mod apply;
pub mod defaults;
mod metadata;
mod mismatch;
pub mod patch;
pub mod protobuf;
pub mod structural;
pub mod table;
pub mod typed;
pub mod validate;
pub mod weight;

pub use metadata::metadata_patch;
pub use mismatch::TypeMismatch;
