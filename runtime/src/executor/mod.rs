//! Executes plans. [`Run`] decides which call comes next and what a response means, without I/O; [`execute`] sends the
//! calls.
//!
//! # Invariants
//! * Calls of one object never run in parallel, and no step runs after a failed one.
//! * A phase starts when all earlier phases have ended.
//! * A write with a version precondition is not sent once the caches contain a newer version: it would be a conflict.
//! * A write is sent once. Only the client repeats it, and only after 429, which proves that nothing was written. After
//!   a lost response the result is [`Failure::Unknown`]: the next plan needs a live read first.

mod call;
mod driver;
mod machine;
mod report;
mod split;
#[cfg(test)]
mod tests;

pub use call::{Call, CallId, Stored};
pub use driver::{Conditions, execute};
pub use machine::{Limits, Run};
pub use report::{Failure, Report, StepResult};
pub use split::StatusForm;
