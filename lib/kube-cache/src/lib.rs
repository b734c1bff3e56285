//! What a Kubernetes controller has observed of a resource, and when it may act on it: state machines without I/O.
//!
//! * [`Reflector`] decides which list or watch request comes next and what follows a failure.
//! * [`Informer`] holds the objects, turns list pages and watch events into [`Delta`]s and keeps [`Index`]es.
//! * [`SharedInformer`] shares one informer among many readers; a [`Snapshot`] is one instant of it.
//! * [`Gate`] holds an owner back until the informers have seen that owner's own last writes.
//! * [`wire`] reads list pages and watch lines from their JSON form, straight into a narrow type.
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
//! /// Performs one effect. Requests and timers report their outcome as a later input; the verdict on a list is known
//! /// at once.
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
//! * An object never moves back in time, and what vanished while there was no watch is reported as a deletion.
//!
//! # What is not here
//! Sockets, tasks and timers. A driver performs the [`Effect`]s and reports back with [`Input`]s. Streaming lists
//! (`sendInitialEvents`) are not spoken: their initial events are not ordered by version.

mod backoff;
mod error;
mod event;
mod failure;
pub mod gate;
mod index;
pub mod informer;
mod key;
pub mod reflector;
mod shared;
mod version;
pub mod wire;

pub use backoff::Backoff;
pub use error::Error;
pub use event::{Delta, Event};
pub use failure::Failure;
pub use gate::{Expectation, Gate, Seen, Verdict};
pub use index::Index;
pub use informer::Informer;
pub use key::{Cached, ObjectKey};
pub use reflector::{Effect, Input, PAGE_LIMIT, Reflector, WatchInput};
pub use shared::{SharedInformer, Snapshot};
pub use version::{ParseVersionError, Version};
