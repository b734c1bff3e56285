//! Admission of CloneSets, in whatever version they are written.

pub mod validate;
mod version;
