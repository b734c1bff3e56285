//! A controller's work queue as a state machine: which key is next, and when to call again.
//!
//! [`Queue`] holds keys (usually namespace and name), never objects: several changes of one object are one piece of
//! work. It combines the three queue types of client-go with the priorities of controller-runtime and a fair order
//! between namespaces.
//!
//! # Guarantees
//! * **Deduplicated.** A key is queued at most once. A second push raises its priority and moves its time forward.
//! * **Exclusive.** A key in flight is never returned again. If it is pushed meanwhile, it becomes ready after
//!   [`Queue::done`].
//! * **In order.** First in, first out within one priority and namespace.
//! * **Fair.** Namespaces of one priority take turns, so that one namespace with a thousand objects does not
//!   delay the others. Live keys are first. After every few live keys comes an initial key
//!   ([`Config::live_per_initial`]), so nothing starves; see [`Queue::pop`] for the bound.
//! * **Deterministic.** Ordered containers only; time is an argument, a `Duration` since any fixed start. The same
//!   calls give the same order on every machine.
//!
//! ```
//! use std::time::Duration;
//! use kube_queue::{Config, Priority, Queue};
//!
//! let mut queue = Queue::new(Config::CLIENT_GO, |key: &(String, String)| &key.0);
//! let key = (String::from("default"), String::from("web"));
//! let start = Duration::ZERO;
//! queue.push(key.clone(), Priority::Live, start);
//!
//! let work = queue.pop(start).expect("a key is ready");
//! // The reconcile failed: retry later. `done` is called in any case.
//! let delay = queue.push_rate_limited(work.key, work.priority, start);
//! queue.done(&key, start);
//! assert_eq!(queue.next_wake(start), Some(delay));
//!
//! let retry = queue.pop(start + delay).expect("the delay is over");
//! // The reconcile succeeded: the next failure starts with the shortest delay again.
//! queue.forget(&retry.key);
//! queue.done(&retry.key, start + delay);
//! assert_eq!(queue.next_wake(start + delay), None);
//! ```
//!
//! # What is not here
//! Tasks, timers, wake-ups and metric registries: a driver sleeps until [`Queue::next_wake`] and publishes
//! [`Counters`], [`Popped::waited`] and [`Done::worked`].

mod backoff;
mod bucket;
mod coalesce;
mod config;
mod delayed;
mod fairness;
mod lane;
mod queue;
mod report;

pub use backoff::Backoff;
pub use bucket::Bucket;
pub use config::Config;
pub use fairness::Priority;
pub use queue::Queue;
pub use report::{Counters, Done, Popped, Unfinished};
