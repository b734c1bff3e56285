//! Labels, annotations and conditions of pods that several oracles read.

/// Label: the phase of a pod's lifecycle.
pub const STATE: &str = "lifecycle.apps.kruise.io/state";
/// Label: its revision.
pub const REVISION: &str = "controller-revision-hash";
/// Label: it must be deleted.
pub const SPECIFIED: &str = "apps.kruise.io/specified-delete";
/// Label of scenarios: holds a pod before an update in place while it is there.
pub const UPDATE_HOOK: &str = "traffic";
/// Condition: false while a pod is updated in place.
pub const GATE: &str = "InPlaceUpdateReady";
