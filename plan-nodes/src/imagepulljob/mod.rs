//! ImagePullJob: pull an image on many nodes, some at a time.
//!
//! # What it promises
//! - **Parallelism.** No more nodes are asked to pull than `parallelism` leaves room for, in the order of the
//!   selector: names as they are listed, nodes of pods in the order in which their workload updates the pods, all
//!   others by name.
//! - **One write for a node.** It asks the node to pull, and names the secrets to pull with. Nodes are asked once all
//!   secrets can be read there.
//! - **Nothing of others is lost.** A write is for the entry of the image that it was planned from. Other owners of
//!   a tag stay, and begin the next round with the job.
//! - **An end.** A job of type `Always` ends when each of its nodes has pulled or failed, or at its deadline, which
//!   is computed from what is stored. A job of type `Never` continues, for nodes that join too. A job that has
//!   ended asks no node.
//! - **Nothing is left behind.** Copies of secrets are deleted with the last job that needs them. Tags are removed
//!   by the controller of NodeImages once their jobs are gone. A job is never held back because something is
//!   missing already.
//! - **Takeover.** What OpenKruise requested for the job counts. Copies of secrets are shared with what it created.
//!
//! # How a plan is made
//! [`targets`] finds the nodes of the job. [`plan()`] copies secrets ([`secrets`]), sorts the nodes by how far they are
//! ([`progress`]), asks the next ones ([`request`]), and reports ([`status`]).

mod events;
mod explain;
mod order;
mod plan;
mod progress;
pub mod reasons;
mod request;
mod secrets;
mod snapshot;
mod status;
mod targets;

pub use order::{Workload, in_update_order};
pub use plan::plan;
pub use snapshot::{Copies, Options, Snapshot};
pub use targets::{Nodes, matches, of_pods, targets};
