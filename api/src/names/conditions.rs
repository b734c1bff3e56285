//! Types and reasons of the conditions that are written here. People and tools match on both.

pub use super::{IN_PLACE_UPDATE_READY, KRUISE_POD_READY, PRE_RECREATE_GRACE, SIDECAR_TERMINATED};

/// Pod condition of Kubernetes: the pod is in service.
pub const READY: &str = "Ready";
/// Reason of [`READY`]: a gate was closed by us, and the kubelet has yet to say so.
pub const READINESS_GATES_NOT_READY: &str = "ReadinessGatesNotReady";
/// Reason of [`IN_PLACE_UPDATE_READY`] that is False.
pub const START_IN_PLACE_UPDATE: &str = "StartInPlaceUpdate";

/// CloneSet condition: does the rollout get anywhere?
pub const PROGRESSING: &str = "Progressing";
/// Reason of [`PROGRESSING`]: pods are being updated.
pub const CLONESET_UPDATED: &str = "CloneSetUpdated";
/// Reason of [`PROGRESSING`]: all pods are up to date and in service.
pub const CLONESET_AVAILABLE: &str = "CloneSetAvailable";
/// Reason of [`PROGRESSING`]: the rollout is paused.
pub const CLONESET_PAUSED: &str = "CloneSetPaused";
/// Reason of [`PROGRESSING`]: as many pods are up to date as the partition lets.
pub const PARTITION_AVAILABLE: &str = "ProgressPartitionAvailable";
/// Reason of [`PROGRESSING`] that is False: the deadline has passed.
pub const DEADLINE_EXCEEDED: &str = "ProgressDeadlineExceeded";
/// CloneSet condition of sets without a deadline: nothing has moved for ten minutes.
pub const STALLED: &str = "Stalled";
/// Reason of [`STALLED`].
pub const NOTHING_MOVED: &str = "NothingMoved";
/// CloneSet condition: the last attempt to create or delete pods failed.
pub const FAILED_SCALE: &str = "FailedScale";
/// CloneSet condition: the last attempt to update pods failed.
pub const FAILED_UPDATE: &str = "FailedUpdate";
/// Reason of [`FAILED_SCALE`] and [`FAILED_UPDATE`] that are True.
pub const LAST_ATTEMPT_FAILED: &str = "LastAttemptFailed";
/// Reason of [`FAILED_SCALE`] and [`FAILED_UPDATE`] that are False.
pub const RECOVERED: &str = "Recovered";

/// Pod condition: can its sidecars follow their SidecarSets in place?
pub const SIDECARSET_UPGRADABLE: &str = "SidecarSetUpgradable";
/// Reason of [`SIDECARSET_UPGRADABLE`] that is True.
pub const ALL_UPGRADABLE: &str = "AllSidecarsetUpgradable";
/// Reason of [`SIDECARSET_UPGRADABLE`] that is False.
pub const IMMUTABLE_FIELD: &str = "UpdateImmutableField";
