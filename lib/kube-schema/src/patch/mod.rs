//! The three kinds of patch that a client sends, applied to raw JSON.
//!
//! A patch applies as a whole or not at all. What comes out is not yet an object: the caller reads
//! it (see [`crate::typed`]) and validates it.

mod error;
mod json;
mod merge;
mod strategic;

pub use error::PatchError;
pub use json::apply as json;
pub use merge::apply as merge;
pub use strategic::{apply as strategic, go_value};

#[cfg(test)]
mod tests;
