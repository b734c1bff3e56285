//! What pods are marked by, for parts of the manager that know no kind.

use kruise_api::names::{sidecarset::INJECTED_LIST, statefulset::POD_NAME};

/// Annotation of a pod with injected sidecars.
pub const INJECTED_SIDECARS: &str = INJECTED_LIST;
/// Label of a pod whose name is its place among the pods of its owner.
pub const OWN_NAME: &str = POD_NAME;
