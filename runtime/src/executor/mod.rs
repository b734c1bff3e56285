//! Executes plans. [`Run`] decides which call comes next and what a response means, without I/O; [`execute`] sends the
//! calls.
//!
//! # Invariants
//! * Calls of one object never run in parallel, and no step runs after a failed one.
//! * A phase starts when all earlier phases have ended.
//! * What comes after the charge of a budget is not sent if the charge fails.
//! * A write with a version precondition is not sent once the caches contain a newer version: it would be a conflict.
//! * A write is sent once. Only the client repeats it, and only after 429, which proves that nothing was written. After
//!   a lost response or a failure of the server the result is [`Failure::Unknown`], and the report names the object
//!   ([`Doubt`]): it must be read before the next plan.
//! * What was created in a form in which its owner does not find it is deleted again at once, and the step has failed.
//! * A server may refuse a failed precondition with 422, as it does invalid content. The object is then read to tell
//!   both apart.

mod call;
mod driver;
mod machine;
mod report;
mod split;
#[cfg(test)]
mod tests;
mod verdict;

pub use call::{Call, CallId, Stored};
pub use driver::{Conditions, execute};
pub use machine::{Limits, Run};
pub use report::{Doubt, Failure, Report, StepResult};
pub use split::StatusForm;
