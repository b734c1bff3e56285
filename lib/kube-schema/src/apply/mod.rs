//! Server-side apply: objects are merged by their schema, and sets of fields say who set what.
//!
//! | function | what |
//! |---|---|
//! | [`merge`] | an object with what was applied to it |
//! | [`compare`] | which fields were added, modified and removed |
//! | [`fields`] | all fields that an object sets |
//! | [`without`] | an object without some fields |
//! | [`faults`] | what the schema does not know of an object |
//!
//! What the schema says counts: lists are merged by keys, as sets or not at all, and some maps are replaced as a
//! whole. Below a part that keeps unknown members, maps are merged and lists are not. [`FieldSet`] reads and writes
//! `fieldsV1`.

mod compare;
mod faults;
mod item;
mod merge;
mod remove;
mod set;
mod shape;
#[cfg(test)]
mod tests;

pub use self::compare::{Comparison, compare};
pub use self::faults::faults;
pub use self::merge::merge;
pub use self::remove::without;
pub use self::set::{FieldSet, fields, with_named};
pub use self::shape::Shape;
