//! A Kubernetes API in one process: pure, synchronous, deterministic.
//!
//! [`Api::handle`] takes a request and the time and answers at once. There is no clock, no randomness and no transport
//! in here: time is an argument, uids and generated names come from a seed, watches are drained by whoever serves them
//! ([`Api::watch_events`]), and what a controller manager would do in the background happens in [`Api::tick`].
//!
//! One path serves every resource. A request names a resource; its row in the registry has the verbs and
//! subresources, the shape of its objects and how its kind differs; the verb then runs the same steps for all:
//!
//! ```text
//! read → shape (typed or structural) → defaults → admission → prepare → validate → preconditions → store → respond
//! ```
//!
//! Around the API is a cluster, [`World`]: a few controllers, a scheduler and simulated nodes, actors that read the
//! store and act by the same requests as everybody else, in virtual or real time.
//!
//! The container runtimes of the nodes have an interface of their own, for node agents that are tested on them:
//! [`runtime`].
//!
//! Webhooks of admission and conversion are called by whoever drives it: a client's request returns [`Outcome::Call`];
//! what components and watches need is in [`World::calls`]; [`World::resume`] takes the answers to both.
//!
//! Invariants:
//! * every write takes one revision, and what a watch shows, applied to a list, is the next list;
//! * a refused or dry-run request changes nothing;
//! * a verb, subresource or encoding that is not implemented is refused as a server would refuse what it lacks.
//!
//! Answers are always JSON. Bodies may be JSON or, for built-in kinds but definitions of custom resources, protobuf.
//!
//! Where it is still more permissive than a server: CEL rules of custom resources inside lists and maps, or beyond the
//! part of the language that is known, the less exact formats (`uri`, `email`, `hostname`, …) of their fields,
//! quotas of what pods request, limit ranges and authorization are not evaluated; volumes are not matched with
//! claims, and storage classes in annotations of claims do not count; `matchPolicy: Equivalent` knows the versions
//! of one resource, not resources that moved between groups; nodes, endpoints, disruption budgets and roles are
//! checked little beyond their metadata; logs are made of the pod's status, and do not follow; ephemeral containers
//! that exist keep their order; `managedFields` of other versions are read as those of the requested one, and a
//! scale cannot be applied. Where it is stricter: match conditions have a part of CEL and are refused beyond it;
//! patterns with Unicode classes are refused; a write whose answer cannot be converted is not stored.

mod admission;
mod api;
mod call;
mod cel;
mod controllers;
mod conversion;
mod crd;
mod discovery;
mod entropy;
mod form;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
#[cfg(feature = "http")]
pub mod http;
mod json_error;
mod kinds;
mod managed;
mod negotiate;
mod nodes;
mod object;
pub mod policy;
mod priority;
mod query;
mod quota;
mod registry;
mod route;
mod scheduler;
mod selector;
mod snapshot;
mod status;
mod storage;
mod store;
mod validation;
mod verbs;
mod watch;
mod webhook;
mod wire;
mod world;

pub use api::{Api, Config, Outcome};
pub use entropy::Entropy;
pub use nodes::{DEFAULT_STAGES, Options, StageError, Timings, runtime};
pub use snapshot::SnapshotError;
pub use status::{Failure, Subject};
pub use watch::{WatchEvent, WatchId};
pub use webhook::{CallId, WebhookCall, WebhookReply};
pub use wire::{Method, Request, Response};
pub use world::World;
