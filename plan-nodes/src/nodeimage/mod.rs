//! NodeImage: the images that one node is to have.
//!
//! # What it promises
//! - **One for each node.** A node that has been ready for a while gets a NodeImage, which has the labels of the
//!   node and is deleted with it. Virtual nodes get none.
//! - **Nothing is left behind.** A tag is removed when all jobs that wanted it are gone, or when its time to live
//!   after the end of the pull is over. A tag that no job ever wanted is removed by its time to live only. A tag
//!   does not expire while a job that wants it still waits for other nodes: the node would pull it again.
//! - **Nothing of others is lost.** A write is for the version of the object that it was planned from, and names
//!   only the images that change. Fields that this build does not know stay.
//! - **Silence is a failure.** If the agent of a node does not report on a tag within ten minutes, the tag has
//!   failed. An agent that reports later is believed.
//!
//! # How a plan is made
//! [`plan()`] creates or deletes the object by its node, then removes what is no longer needed ([`tidy`]), and only
//! if there is nothing to remove judges how pulling goes ([`overdue`]).

mod overdue;
mod plan;
mod snapshot;
mod tidy;

pub use plan::{is_due, plan};
pub use snapshot::{Jobs, Options, Owner, Secrets, Snapshot};
