//! Types and reasons of conditions. People and tools match on both.
/// Pod condition of Kubernetes: the pod is ready.
pub const READY: &str = "Ready";
/// Pod condition: its init containers have ended.
pub const INITIALIZED: &str = "Initialized";
/// Reason of [`READY`] that this program sets to False together with a readiness gate, before the kubelet does.
pub const READINESS_GATES_NOT_READY: &str = "ReadinessGatesNotReady";
/// Reason of [`IN_PLACE_UPDATE_READY`](super::IN_PLACE_UPDATE_READY) that is False.
pub const START_IN_PLACE_UPDATE: &str = "StartInPlaceUpdate";

/// Pod condition: the job is finished, and the sidecars were terminated.
pub const SIDECAR_TERMINATED: &str = "SidecarTerminated";
/// ContainerRecreateRequest condition: the pod is not ready, and its containers are about to stop.
pub const PRE_RECREATE_GRACE: &str = "PreRecreateGrace";

/// CloneSet condition: progress of the rollout.
pub const PROGRESSING: &str = "Progressing";
/// Reason of [`PROGRESSING`]: pods are being updated.
pub const CLONESET_UPDATED: &str = "CloneSetUpdated";
/// Reason of [`PROGRESSING`]: all pods are updated and available.
pub const CLONESET_AVAILABLE: &str = "CloneSetAvailable";
/// Reason of [`PROGRESSING`]: the rollout is paused.
pub const CLONESET_PAUSED: &str = "CloneSetPaused";
/// Reason of [`PROGRESSING`]: all pods outside of the partition are updated and available.
pub const PARTITION_AVAILABLE: &str = "ProgressPartitionAvailable";
/// Reason of [`PROGRESSING`] that is False: the deadline has passed.
pub const DEADLINE_EXCEEDED: &str = "ProgressDeadlineExceeded";
/// CloneSet condition: a rollout made no progress until its deadline, or for ten minutes if it has none. Its reason is
/// [`DEADLINE_EXCEEDED`] or [`NOTHING_MOVED`]; [`PODS_REFUSED`] at once if the API server refuses the new pods;
/// [`INVALID_SPEC`] if no rollout is possible.
pub const STALLED: &str = "Stalled";
/// Reason of [`STALLED`]: no progress for ten minutes, without a deadline.
pub const NOTHING_MOVED: &str = "NothingMoved";
/// Reason of [`STALLED`]: the API server refuses pods of the new revision, so no old one is deleted for them.
pub const PODS_REFUSED: &str = "PodsRefused";
/// Reason of [`STALLED`]: the specification cannot be read, and nothing is done.
pub const INVALID_SPEC: &str = "InvalidSpec";
/// CloneSet condition: the last attempt to create or delete pods failed.
pub const FAILED_SCALE: &str = "FailedScale";
/// CloneSet condition: the last attempt to update pods failed.
pub const FAILED_UPDATE: &str = "FailedUpdate";
/// Reason of [`FAILED_SCALE`] and [`FAILED_UPDATE`] that are True.
pub const LAST_ATTEMPT_FAILED: &str = "LastAttemptFailed";
/// Reason of [`FAILED_SCALE`] and [`FAILED_UPDATE`] that are False.
pub const RECOVERED: &str = "Recovered";

/// Pod condition: the sidecars can be upgraded to the current SidecarSets in place.
pub const SIDECARSET_UPGRADABLE: &str = "SidecarSetUpgradable";
/// Reason of [`SIDECARSET_UPGRADABLE`] that is True.
pub const ALL_UPGRADABLE: &str = "AllSidecarsetUpgradable";
/// Reason of [`SIDECARSET_UPGRADABLE`] that is False.
pub const IMMUTABLE_FIELD: &str = "UpdateImmutableField";

/// BroadcastJob condition, and its reason: all pods finished.
pub const JOB_COMPLETE: &str = "Complete";
/// BroadcastJob condition, and its reason: the job failed.
pub const JOB_FAILED: &str = "Failed";
/// BroadcastJob condition: the job creates no more pods. It is False after a user let a job continue whose failed
/// pods are still there.
pub const JOB_PAUSED: &str = "Paused";
/// Reason of [`JOB_PAUSED`]: `spec.paused`.
pub const PAUSED_BY_USER: &str = "Specified";
/// Reason of [`JOB_PAUSED`]: pods failed, and the failure policy is `Pause`.
pub const PAUSED_BY_FAILURE: &str = "FailedPods";
/// Reason of [`JOB_PAUSED`] that is False.
pub const RESUMED: &str = "Resumed";
/// BroadcastJob condition: no pod of a job that has ended runs. While it is False, those that run are deleted. A
/// job that OpenKruise ended has no such condition, and its pods are left alone.
pub const JOB_STOPPED: &str = "PodsStopped";
/// Reason of [`JOB_STOPPED`] that is False.
pub const PODS_RUN: &str = "PodsRun";
/// Reason of [`JOB_STOPPED`] that is True.
pub const NO_POD_RUNS: &str = "NoPodRuns";

/// EphemeralJob condition: the controller has observed the job.
pub const EPHEMERAL_INITIALIZED: &str = INITIALIZED;
/// EphemeralJob condition: no pod matches the selector.
pub const EPHEMERAL_MATCHED_EMPTY: &str = "MatchedEmpty";
/// Reason of [`EPHEMERAL_MATCHED_EMPTY`].
pub const EPHEMERAL_MATCH_EMPTY: &str = "MatchEmpty";
/// EphemeralJob condition: all containers ended with exit code 0.
pub const EPHEMERAL_SUCCEEDED: &str = "JobSucceeded";
/// EphemeralJob condition, and its reason: a container failed.
pub const EPHEMERAL_FAILED: &str = "JobFailed";
/// Reason of [`EPHEMERAL_FAILED`]: containers could not be added to pods.
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

/// UnitedDeployment condition: the workloads of all subsets exist.
pub const SUBSET_PROVISIONED: &str = "SubsetProvisioned";
/// UnitedDeployment condition: the workloads of all subsets have its current specification.
pub const SUBSET_UPDATED: &str = "SubsetUpdated";
/// UnitedDeployment condition that OpenKruise defines and never writes.
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
/// Reason of [`SCHEDULABLE`] that is True in a UnitedDeployment: the subset is tried again.
pub const RECOVER: &str = "recover";
/// Reason of [`SCHEDULABLE`] that is False in a UnitedDeployment that reserves pods: the subset is new.
pub const CREATED_SUBSET: &str = "created";
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
/// ResourceDistribution condition: other objects have the names of copies.
pub const CONFLICT_OCCURRED: &str = "ConflictOccurred";
/// ResourceDistribution condition: a listed namespace does not exist.
pub const NAMESPACE_NOT_EXISTS: &str = "NamespaceNotExists";
/// Reason of the conditions of a ResourceDistribution that are False.
pub const SUCCEEDED: &str = "Succeeded";
