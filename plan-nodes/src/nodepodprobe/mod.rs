//! NodePodProbe: the probes of one node, and what their results do to pods.
//!
//! # What it promises
//! - **One for each node.** A node gets its NodePodProbe when it is ready, and loses it when it goes. Virtual nodes
//!   have none.
//! - **Nothing is left.** Pods that are gone, have ended or were replaced by another pod of their name are removed
//!   from the list, and so are probes of markers that are gone. What is added at the same time is not lost: the
//!   list is written to the version that it was made from only.
//! - **Pods follow results.** A condition is `True` after success, and `False` after anything else. Labels and
//!   annotations of the policies that do not apply are removed, those of the policy that applies are set: after
//!   `Unknown` none is there. Of two probes with the same condition on a pod the first one in the status decides.
//! - **One request.** Conditions, labels and annotations of a pod change in one request, and only if they differ.
//! - **Old results count for nothing.** A result is that of a probe which the list has, for the very pod.
//!
//! The status is written by the node's agent, which also removes results of probes that left the list. Which probes
//! there are is decided in `podprobemarker`.

mod plan;
mod results;
mod snapshot;
mod tidy;

pub use plan::plan;
pub use snapshot::{Cluster, Known, Snapshot};
