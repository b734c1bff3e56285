//! AdvancedCronJob: create jobs by a schedule, as its concurrency policy lets them run, and keep some of those that
//! ended.
//!
//! # What it promises
//! - **No activation twice.** The name of a job follows from its activation, so that a second request for it meets
//!   the first one's job. The newest activation that had a job is in the status, and never moves back: older ones
//!   have their time behind them, whatever becomes of their jobs and of the clock. The status is written right
//!   after the job is created, and a job is deleted only after the status names its activation or a later one.
//! - **The latest due activation is not lost.** A job is created before the status says so. A manager that ends in
//!   between finds the job, and one that ends before it creates it. Of several activations that have passed, the
//!   latest counts.
//! - **Concurrency.** With `Forbid` a job is created only if no other one runs, and with `Replace` only once all
//!   others are deleted.
//! - **History.** Of the jobs that ended well and of those that failed, the newest stay.
//! - **Takeover.** Jobs have the names, annotations and owner references that OpenKruise gives them. They are found
//!   by the uid of their owner, whichever version of the kind their references name.
//!
//! A job that somebody else deletes before the status could be written leaves no trace: its activation counts as
//! one that had no job.
//!
//! * `snapshot`: the input; `plan`: the order of decisions; `activations`: what is due, and what comes next;
//!   `runs`: the jobs that there are; `create`: a new one; `history`: those that go; `status`: what is reported;
//!   `events`: in which words.

mod activations;
mod create;
mod events;
mod explain;
mod history;
mod plan;
pub mod reasons;
mod runs;
mod snapshot;
mod status;

pub use plan::plan;
pub use snapshot::{Snapshot, resource};
