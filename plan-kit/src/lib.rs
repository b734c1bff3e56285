//! What every planner shares: the shape of a [`Plan`], the writes it may ask for, and the decisions that all workloads
//! take alike (revisions, in-place updates, lifecycle, order of pods).
//!
//! Invariants: pure functions of their arguments; time comes in as `now`; same input, same plan, same bytes. A bad
//! specification is data (a condition, an event, a [`Why`]), never an `Err`.

pub mod availability;
pub mod claims;
pub mod finalizers;
pub mod fit;
pub mod history;
pub mod image;
pub mod injected;
pub mod inplace;
pub mod instance;
mod intent;
pub mod jobs;
pub mod ledger;
pub mod lifecycle;
mod memory;
mod need;
pub mod newest;
pub mod order;
pub mod ordinals;
pub mod outlook;
mod owner;
mod plan;
pub mod pod_writes;
pub mod priority;
mod put;
pub mod readiness;
pub mod reads;
pub mod rollout;
pub mod sidecars;
pub mod spread;
mod status;
mod template;
pub mod trial;
pub mod workloads;
mod write;

pub use history::revision;
pub use intent::{Blocks, Intent, PodChange};
pub use kruise_api::names::events::{self, EventKind};
pub use kruise_api::resource::ResourceId;
pub use memory::{Attempts, FailedCopy, Holder, Known, Memory, Unread};
pub use need::Need;
pub use owner::Owner;
pub use plan::{
    Batching, EventNote, Explain, FailureNote, Involved, ObjectWrites, Phase, Plan, PodRef, StatusPatch,
    Step, Why,
};
pub use put::put;
pub use status::{Urgency, status_patch};
pub use template::Template;
pub use write::{Body, Part, Patch, Precondition, Target, Write};
