//! The informer cache of a Kubernetes controller and its expectations: state machines without I/O.
//!
//! * [`Reflector`] decides which list or watch request comes next and what follows a failure.
//! * [`Informer`] stores the objects, turns list pages and watch events into [`Delta`]s and keeps [`Index`]es.
//! * [`SharedInformer`] shares one informer among many readers; a [`Snapshot`] is a consistent view of it.
//! * [`Expectations`] delay the reconcile of an owner until the informers have observed that owner's last writes.
//! * [`wire`] decodes list pages and watch lines straight into a narrow type.
//!
//! # How a driver uses it
//! ```
//! # use kube_cache::*;
//! # struct Pod;
//! # impl Cached for Pod {
//! #     fn namespace(&self) -> &str { "" }
//! #     fn name(&self) -> &str { "" }
//! #     fn uid(&self) -> &str { "" }
//! #     fn resource_version(&self) -> &str { "" }
//! # }
//! /// Performs one effect. Requests and timers report their result as a later input; the result of applying a list is
//! /// known at once.
//! fn perform(effect: Effect<Pod>, informer: &SharedInformer<Pod>) -> Option<Input<Pod>> {
//!     match effect {
//!         Effect::Inform(event) => {
//!             let is_list = matches!(event, Event::ListDone { .. });
//!             match informer.apply(event) {
//!                 Ok(deltas) => {
//!                     for delta in deltas { /* map to owners and push their keys */ }
//!                     is_list.then_some(Input::ListAccepted)
//!                 }
//!                 Err(refusal) => Some(Input::Refused),
//!             }
//!         }
//!         Effect::ForgetHistory => { informer.forget_history(); None }
//!         Effect::List { .. } | Effect::Watch { .. } | Effect::Sleep(_) => { /* start it */ None }
//!     }
//! }
//! ```
//!
//! # Invariants
//! * Nothing here performs I/O, reads a clock or draws random numbers; time and jitter are arguments.
//! * Only ordered containers: the same inputs give the same outputs in the same order.
//! * A stored object is never replaced by an older state. An object that was deleted while no watch was open is
//!   reported as a deletion by the next list.
//!
//! # What is not here
//! Sockets, tasks and timers. A driver performs the [`Effect`]s and reports back with [`Input`]s. It may answer
//! [`Effect::List`] with a list that the server streams ([`StreamedList`]), as one page.

mod backoff;
mod error;
mod event;
pub mod expectations;
mod failure;
mod index;
pub mod informer;
mod key;
pub mod reflector;
mod shared;
mod streamed;
mod version;
pub mod wire;

pub use backoff::Backoff;
pub use error::Error;
pub use event::{Delta, Event};
pub use expectations::{CacheState, Expectation, Expectations, Verdict};
pub use failure::Failure;
pub use index::Index;
pub use informer::Informer;
pub use key::{Cached, ObjectKey};
pub use reflector::{Effect, Input, PAGE_LIMIT, Reflector, WatchInput};
pub use shared::{SharedInformer, Snapshot};
pub use streamed::{StreamedLine, StreamedList};
pub use version::{ParseVersionError, Version};
