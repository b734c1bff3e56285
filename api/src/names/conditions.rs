//! Types and reasons of conditions. People and tools match on both.
/// Pod condition of Kubernetes: the pod is in service.
pub const READY: &str = "Ready";
/// Reason of [`READY`]: a gate was closed by us, and the kubelet has yet to say so.
pub const READINESS_GATES_NOT_READY: &str = "ReadinessGatesNotReady";
/// Reason of [`IN_PLACE_UPDATE_READY`](super::IN_PLACE_UPDATE_READY) that is False.
pub const START_IN_PLACE_UPDATE: &str = "StartInPlaceUpdate";

/// Pod condition: its job is over, and its sidecars were ended.
pub const SIDECAR_TERMINATED: &str = "SidecarTerminated";
/// ContainerRecreateRequest condition: the pod has been taken out of service before its containers stop.
pub const PRE_RECREATE_GRACE: &str = "PreRecreateGrace";

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

/// BroadcastJob condition, and its reason: all pods have come to their end.
pub const JOB_COMPLETE: &str = "Complete";
/// BroadcastJob condition, and its reason: the job was given up.
pub const JOB_FAILED: &str = "Failed";

/// EphemeralJob condition: the job was seen.
pub const EPHEMERAL_INITIALIZED: &str = "Initialized";
/// EphemeralJob condition: there is no pod that the job is for.
pub const EPHEMERAL_MATCHED_EMPTY: &str = "MatchedEmpty";
/// Reason of [`EPHEMERAL_MATCHED_EMPTY`].
pub const EPHEMERAL_MATCH_EMPTY: &str = "MatchEmpty";
/// EphemeralJob condition: all containers have ended well.
pub const EPHEMERAL_SUCCEEDED: &str = "JobSucceeded";
/// EphemeralJob condition, and its reason: containers have ended badly.
pub const EPHEMERAL_FAILED: &str = "JobFailed";
/// Reason of [`EPHEMERAL_FAILED`]: containers could not be put into pods.
pub const EPHEMERAL_CREATE_FAILED: &str = "CreateFailed";
/// Reason of [`EPHEMERAL_FAILED`]: the deadline has passed.
pub const EPHEMERAL_DEADLINE: &str = "DeadlineExceeded";
/// EphemeralJob condition: the job cannot be run.
pub const EPHEMERAL_ERROR: &str = "JobError";
/// Reason of [`EPHEMERAL_ERROR`], and of [`SUBSET_PROVISIONED`] and [`SUBSET_UPDATED`] that are False.
pub const ERROR: &str = "Error";

/// StatefulSet condition: a pod could not be created.
pub const FAILED_CREATE_POD: &str = "FailedCreatePod";
/// StatefulSet condition: a pod could not be updated.
pub const FAILED_UPDATE_POD: &str = "FailedUpdatePod";

/// UnitedDeployment condition: its workloads are there.
pub const SUBSET_PROVISIONED: &str = "SubsetProvisioned";
/// UnitedDeployment condition: its workloads say what it says.
pub const SUBSET_UPDATED: &str = "SubsetUpdated";
/// UnitedDeployment condition that OpenKruise knows and never writes.
pub const SUBSET_FAILURE: &str = "SubsetFailure";
/// UnitedDeployment condition: all pods are of the newest revision.
pub const UNITED_UPDATED: &str = "UnitedDeploymentUpdated";
/// Reason of [`UNITED_UPDATED`] that is True.
pub const UNITED_REVISION_UPDATED: &str = "UnitedDeploymentRevisionUpdated";
/// Reason of [`UNITED_UPDATED`] that is False.
pub const UNITED_REVISION_UPDATING: &str = "UnitedDeploymentRevisionUpdating";

/// Condition of a subset of a UnitedDeployment or a WorkloadSpread: pods can be scheduled there.
pub const SCHEDULABLE: &str = "Schedulable";
/// Reason of [`SCHEDULABLE`] in a UnitedDeployment.
pub const RESCHEDULE: &str = "reschedule";
/// Reason of [`SCHEDULABLE`] that is False in a WorkloadSpread.
pub const POD_UNSCHEDULABLE: &str = "PodUnschedulable";
/// Reason of [`SCHEDULABLE`] that is True in a WorkloadSpread.
pub const SUFFICIENT: &str = "Sufficient";

/// ResourceDistribution condition: copies could not be read.
pub const GET_FAILED: &str = "GetResourceFailed";
/// ResourceDistribution condition: copies could not be created.
pub const CREATE_FAILED: &str = "CreateResourceFailed";
/// ResourceDistribution condition: copies could not be updated.
pub const UPDATE_FAILED: &str = "UpdateResourceFailed";
/// ResourceDistribution condition: copies could not be deleted.
pub const DELETE_FAILED: &str = "DeleteResourceFailed";
/// ResourceDistribution condition: somebody else's objects are where copies belong.
pub const CONFLICT_OCCURRED: &str = "ConflictOccurred";
/// ResourceDistribution condition: namespaces that are named do not exist.
pub const NAMESPACE_NOT_EXISTS: &str = "NamespaceNotExists";
/// Reason of the conditions of a ResourceDistribution that are False.
pub const SUCCEEDED: &str = "Succeeded";
