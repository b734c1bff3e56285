//! Admission: what we change, and what we refuse, before an API server stores it.
//!
//! Every decision is a pure function of a [`Request`] and [`Options`]; the envelope, HTTP and TLS are somebody
//! else's. Objects stay raw JSON and changes are minimal patches, so fields newer than this program survive.
//!
//! * [`manifests`]: what an API server has to know to call us, and what we serve;
//! * [`pod`]: what happens to new pods: the readiness gate, and injection of sidecars;
//! * [`cloneset`]: defaults and rules of CloneSets;
//! * [`sidecarset`]: defaults, hashes and rules of SidecarSets;
//! * [`kinds`]: defaults and rules of every other kind, in one table;
//! * [`look`]: what rules ask about other objects;
//! * [`convert`]: every kind in the version that is asked for.

pub mod cloneset;
pub mod convert;
mod deletion;
mod error;
mod json;
pub mod kinds;
pub mod look;
pub mod manifests;
mod options;
pub mod pod;
mod request;
pub mod sidecarset;
mod workload;

pub use error::Error;
pub use options::Options;
pub use request::{Answer, Operation, Request};
