//! Admission: what we change, and what we refuse, before an API server stores it.
//!
//! `review(&Request, Options, &Lookups) -> Outcome`: every review is a pure function of its request, of the gates
//! and flags, and of what was looked up so far. It ends in a [`Response`], or names the [`Lookup`](lookup::Lookup)s
//! that are missing and is made again with their results. The envelope, HTTP, TLS and the lookups themselves are
//! the caller's.
//!
//! # How a review ends
//! - [`Response`]: the answer.
//! - `Missing`, `Retry`: lookups to make first. The caller answers them from its caches, then by a GET within the
//!   time limit, and makes the review again.
//! - `Widen`: further requests need a webhook before this object may be stored. The caller adds a match condition
//!   to the registered one, waits for the API servers, and sends the response.
//! - `Write`: a status has to be stored first, as for the charge of a budget. The caller makes the review again on
//!   the newest version, together with all that wait for the same object, stores what they want in one write, and
//!   makes each once more on what is stored.
//! - `Refused`: a guard refuses, which the caller also counts, logs and reports as an event.
//!
//! # What it promises
//! - Objects stay raw JSON and changes are minimal patches, so fields newer than this program survive.
//! - A patch is computed once and serialised once: a [`Response`] holds the text that is sent.
//! - What is stored stays writable: on UPDATE no rule is held against an object that the stored one breaks in the
//!   same way.
//! - Every webhook is a row of one [`table`]. What it does not know is refused: there is no way past it that allows.
//!
//! # Where things are
//! * [`table`]: the webhooks, and how to add a kind;
//! * [`kinds`]: defaults and rules, one folder a kind;
//! * [`pod`]: what happens to new pods: the readiness gate, the subset of their WorkloadSpread, sidecars, the order
//!   in which containers start;
//! * [`deletion`]: objects that a label keeps from being deleted;
//! * [`disruption`]: deletions, evictions and updates of pods that a budget protects;
//! * [`lookup`]: what reviews ask about other objects, and how to add such a question;
//! * [`protocol`]: what reviews and their caller exchange, as what has to be stored before a request passes;
//! * [`widening`]: requests that a webhook must be called for before an object is stored;
//! * [`manifests`]: the table as webhook configurations;
//! * [`convert`]: every kind in the version that is asked for.

pub mod convert;
pub mod deletion;
pub mod disruption;
mod error;
mod json;
pub mod kinds;
pub mod lookup;
pub mod manifests;
mod namespaces;
mod options;
mod patch;
mod patched;
pub mod pod;
pub mod protocol;
mod refused;
mod request;
mod response;
pub mod table;
pub mod widening;
mod workload;

pub use error::Error;
pub use kinds::{sidecarset, wrong_types};
pub use lookup::{Lookups, Outcome};
pub use options::Options;
pub use refused::{BY_BUDGET, BY_LABEL, Refused};
pub use request::{Operation, Request};
pub use response::{Reason, Response};
