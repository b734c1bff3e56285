//! Admission: what we change, and what we refuse, before an API server stores it.

pub mod manifests;
