//! The workload finder: which workloads a pod belongs to, how many pods they want, and which pods belong to a workload.
//!
//! These functions read nothing. They take a [`Source`], which says what is [`Known`] of a workload: the manager's
//! caches and its reads of the API server, or a table in a test. What has yet to be read is named in their results
//! (`missing`), and the caller makes them again once it has been read. A workload that cannot be read never fails
//! the whole.
//!
//! - [`chain`]: the owners of a pod, from its controller upwards.
//! - [`of_target`]: the pods of a workload, and how many it wants.
//! - [`of_selector`]: the pods that labels select, and how many their workloads want.
//! - [`wanted`]: whether anybody wants a pod to run. [`of_wanted_target`] and [`of_selector`] leave out the pods that
//!   nobody wants.
//! - [`allowed_kinds`]: the kinds that administrators name in a setting.
//!
//! Groups and kinds are compared, versions are not: the version in a reference may be one that is not served any more.

mod allowed;
mod chain;
mod known;
mod pods;
mod wanted;

pub use allowed::{AllowedKind, allowed_kinds};
pub use chain::{Chain, chain};
pub use known::{Aspect, Expected, Known, Source, Workload};
pub use pods::{PodsOf, expecting, is_in_scale, of_selector, of_target, of_wanted_target};
pub use wanted::{Ownership, Wanted, wanted};

#[cfg(test)]
mod tests;
