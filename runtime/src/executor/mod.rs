//! Applies plans. [`Run`] decides which call comes next and what a reply means, without I/O; [`execute`] sends the
//! calls.
//!
//! # Invariants
//! * Never two calls of one object at a time, and no step after one that failed.
//! * A phase starts when all earlier phases have ended.
//! * A write that is for one version of an object is not sent once the caches show a newer one.
//! * A write is sent once. Only the client repeats it, and only when the server answered 429, which proves that
//!   nothing was written. A lost reply is [`Failure::Unknown`]: look at the server, then plan again.

mod call;
mod driver;
mod machine;
mod report;
mod split;
#[cfg(test)]
mod tests;

pub use call::{Call, CallId, Stored};
pub use driver::{World, execute};
pub use machine::{Limits, Run};
pub use report::{Failure, Report, StepResult};
pub use split::StatusForm;
