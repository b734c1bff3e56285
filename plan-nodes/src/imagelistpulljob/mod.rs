//! ImageListPullJob: pull several images, by one ImagePullJob for each.
//!
//! # What it promises
//! - **One job for each image.** A job is created for each image that has none, in batches that grow. The job of an
//!   image that left the list is deleted, and so is one with another template, whose place a new one takes.
//! - **Equal is equal.** Templates are compared member by member, with their defaults. The hash that OpenKruise
//!   writes depends on its version: jobs with another hash and an equal template stay.
//! - **Once is enough.** The job of an image stays when it has ended, and is deleted with the list: it is what
//!   shows that the image was pulled.
//! - **An end.** A list of type `Always` ends when each of its jobs has. An ended list creates nothing.

mod create;
mod plan;
pub mod reasons;
mod status;
mod template;

pub use plan::{Snapshot, plan};
