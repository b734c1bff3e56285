//! BroadcastJob: run one pod to its end on each node that its template fits.
//!
//! # What it promises
//! - **One pod a node.** A node gets a pod if it has none of the job, in whatever state. A pod that has ended is never
//!   deleted, and its node gets no other one while it is there.
//! - **Parallelism.** No more pods are created than `parallelism` leaves room for. Percentages are of the nodes
//!   that are to run a pod now.
//! - **Nodes that change.** A running pod is judged by its own specification: it is deleted if a taint `NoExecute`
//!   or a label says so. Taints `NoSchedule` and cordons keep new pods off, and let it end.
//! - **An end.** A job of type `Always` is complete once every node that is to run a pod has one that has ended,
//!   failed or is being deleted. It fails at its deadline, which is computed from what is stored. Once the end is
//!   stored, what still runs is deleted. An ended job creates nothing.
//! - **Back-off.** A pod that may not run on its node by its own specification only, because something changed it
//!   when it was created, is left for a while that doubles, holds up no other pod, and is reported.
//! - **Pause.** A job that a failed pod paused stays paused until the failed pods are gone, the policy is another
//!   one, or the user pauses it and lets it go on.
//! - **Budgets.** A pod that serves is deleted only if its PodUnavailableBudget lets it go.
//! - **Takeover.** Pods that OpenKruise created are the job's, whichever version of the job their owner references
//!   name. What still runs of a job that OpenKruise ended is left alone.
//!
//! # How a plan is made
//! [`plan()`] sorts the pods by their nodes ([`places`]) and finds the *course* of the job ([`course`]): paused,
//! failed, completed, running, or ended before. The course decides what is written ([`create`], [`delete`]) and
//! reported ([`status`]).

mod course;
mod create;
mod delete;
mod events;
mod explain;
mod places;
mod plan;
pub mod reasons;
mod snapshot;
mod status;

pub use kruise_plan_kit::{Explain, fit::Placed};
pub use plan::plan;
pub use snapshot::{Options, Snapshot, placement};
