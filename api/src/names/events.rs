//! The reasons of all events that are written, in one table. Tools match on reasons and types. The reference in
//! `docs/reference` is generated from the table.

use std::fmt;

/// Severity of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    /// Information.
    Normal,
    /// A problem.
    Warning,
}

impl EventKind {
    /// The wire form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// Why an event is written.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reason {
    /// One word for machines.
    pub name: &'static str,
    /// The type of the event.
    pub kind: EventKind,
    /// The kinds of object that it is about.
    pub on: &'static [&'static str],
    /// When it is written.
    pub when: &'static str,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq<str> for Reason {
    fn eq(&self, other: &str) -> bool {
        self.name == other
    }
}

/// A reason for each constant, and [`ALL`] of them.
macro_rules! reasons {
    ($($constant:ident = $name:literal, $kind:ident, [$($on:literal),+], $when:literal;)+) => {
        $(
            #[doc = $when]
            pub static $constant: $crate::names::events::Reason = $crate::names::events::Reason {
                name: $name,
                kind: $crate::names::events::EventKind::$kind,
                on: &[$($on),+],
                when: $when,
            };
        )+
        /// Every reason.
        pub static ALL: &[&$crate::names::events::Reason] = &[$(&$constant),+];
    };
}
pub(super) use reasons;

reasons! {
    SUCCESSFUL_CREATE = "SuccessfulCreate", Normal, ["AdvancedCronJob", "BroadcastJob", "CloneSet", "DaemonSet", "StatefulSet"], "A pod, or a job of a schedule, was created.";
    FAILED_CREATE = "FailedCreate", Warning, ["AdvancedCronJob", "BroadcastJob", "CloneSet", "DaemonSet", "ImageListPullJob", "StatefulSet"], "A pod, a claim, or a job of a schedule or a list of images could not be created; the message ends with the error of the API server.";
    SUCCESSFUL_DELETE = "SuccessfulDelete", Normal, ["AdvancedCronJob", "BroadcastJob", "CloneSet", "DaemonSet", "StatefulSet"], "A pod, or a job of a schedule, was deleted.";
    FAILED_DELETE = "FailedDelete", Warning, ["AdvancedCronJob", "BroadcastJob", "CloneSet", "DaemonSet", "StatefulSet"], "A pod, a claim or a job of a schedule could not be deleted.";
    FAILED_DAEMON_POD = "FailedDaemonPod", Warning, ["DaemonSet"], "A pod has failed on its node and is replaced.";
    SELECTING_ALL = "SelectingAll", Warning, ["DaemonSet"], "The selector is empty; nothing is done.";
    FAILED_UPDATE = "FailedUpdate", Warning, ["CloneSet", "StatefulSet"], "A claim could not be assigned to its owners, or a pod not get its labels back.";
    SUCCESSFUL_UPDATE = "SuccessfulUpdate", Normal, ["StatefulSet"], "A pod got the labels back that name it.";
    SUCCESSFUL_RESIZE = "SuccessfulResize", Normal, ["StatefulSet"], "A claim asks for as much storage as its template.";
    FAILED_RESIZE = "FailedResize", Warning, ["StatefulSet"], "A claim could not ask for more storage.";
    FAILED_UPDATE_CLAIM = "FailedUpdatePVC", Warning, ["StatefulSet"], "A claim cannot follow its template; its pod is not updated.";
    SUCCESSFUL_IN_PLACE = "SuccessfulUpdatePodInPlace", Normal, ["CloneSet", "DaemonSet", "StatefulSet"], "A pod was updated in place; its containers change next.";
    FAILED_IN_PLACE = "FailedUpdatePodInPlace", Warning, ["CloneSet", "DaemonSet", "StatefulSet"], "A pod could not be updated in place.";
    SUCCESSFUL_RECREATE = "SuccessfulUpdatePodReCreate", Normal, ["CloneSet"], "An update deleted a pod to recreate it or, if a preDelete hook holds the pod, labelled it for deletion.";
    FAILED_RECREATE = "FailedUpdatePodReCreate", Warning, ["CloneSet"], "A pod that an update recreates could not be deleted.";
    INVALID_STATE = "InvalidInPlaceUpdateState", Warning, ["CloneSet", "DaemonSet", "StatefulSet"], "The annotation with the state of an in-place update cannot be read.";
    SCALE_UP_LIMITED = "ScaleUpLimited", Warning, ["CloneSet"], "scaleStrategy.maxUnavailable allows fewer new pods than are missing.";
    CREATED_PULL_JOB = "CreatedImagePullJob", Normal, ["CloneSet", "DaemonSet", "StatefulSet"], "A job that pulls an image ahead of a rollout was created.";
    FAILED_PULL_JOB = "FailedCreateImagePullJob", Warning, ["CloneSet", "DaemonSet", "StatefulSet"], "A job that pulls an image ahead of a rollout could not be created.";
    RESIZE_INFEASIBLE = "ResizeInfeasible", Warning, ["CloneSet", "DaemonSet", "StatefulSet"], "A node can never give a pod the resources that an update asks for.";
    CONTAINER_REPLACED = "ContainerReplaced", Warning, ["CloneSet", "DaemonSet", "SidecarSet", "StatefulSet"], "A sidecar has the name of a container of the pod template, and has taken its place in the pods; the message says which. Rename one of them.";
    STALLED = "Stalled", Warning, ["CloneSet", "DaemonSet", "StatefulSet"], "A rollout is past its deadline or, without a deadline, made no progress for ten minutes, or the API server refuses the new pods; the message says what it waits for.";
    INVALID_SPEC = "InvalidSpec", Warning, ["AdvancedCronJob", "BroadcastJob", "CloneSet", "ContainerRecreateRequest", "DaemonSet", "EphemeralJob", "ImageListPullJob", "ImagePullJob", "NodeImage", "NodePodProbe", "PersistentPodState", "PodProbeMarker", "PodUnavailableBudget", "ResourceDistribution", "SidecarSet", "StatefulSet", "UnitedDeployment", "WorkloadSpread"], "The specification cannot be read; nothing is done.";
    INVALID_POD_METADATA = "InvalidPodMetadata", Warning, ["SidecarSet"], "A pod annotation that the SidecarSet patches cannot be merged; the pod is not upgraded.";
    NOT_UPGRADABLE = "NotUpgradablePods", Normal, ["SidecarSet"], "Pods cannot be upgraded in place; written when their number changes.";
    UNINJECTED = "UninjectedPods", Warning, ["SidecarSet"], "Pods that the SidecarSet matches were created without its sidecars; written when their number changes.";
    RESET_SUCCEED = "ResetContainerSucceed", Normal, ["SidecarSet"], "After a hot upgrade the old container was set to the empty image.";
    RESET_FAILED = "ResetContainerFailed", Warning, ["SidecarSet"], "After a hot upgrade the old container could not be set to the empty image.";
    FAILED_LAUNCH = "FailedLaunch", Warning, ["Pod"], "Containers wait to start, because the barrier ConfigMap cannot be written or belongs to another owner.";
    CALLED_FOR_ALL = "CalledForAll", Warning, ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"], "A webhook is called for all new pods, or for all evictions, of the cluster: they depend on the managers. The message says what would change that.";
    PREVENTED_DELETION = "PubPreventPodDeletion", Warning, ["PodUnavailableBudget"], "The budget refused to let pods be deleted, evicted or updated; renewed at most every ten seconds while it does.";
    NO_PODS = "NoPods", Normal, ["PodUnavailableBudget"], "The budget covers no active pods.";
    EXPECTED_UNREADABLE = "CalculateExpectedPodCountFailed", Warning, ["PodUnavailableBudget"], "maxUnavailable or minAvailable cannot be read; the budget is not counted.";
    NOT_DELETED = "NotDeleted", Warning, ["Pod"], "A deletion or an eviction that a budget allowed did not happen within 20 seconds.";
    TOO_MANY_ACTIVE = "TooManyActivePods", Warning, ["BroadcastJob"], "More pods run than parallelism allows; none is created until some have ended.";
    DUPLICATE_POD = "DuplicatePodCreatedOnSameNode", Warning, ["BroadcastJob"], "A node has two pods of the job.";
    NO_ROOM_FOR_PODS = "UnschedulablePods", Warning, ["BroadcastJob"], "The scheduler finds no room for pods on their nodes; the job waits for them.";
    UNFIT_PODS = "PodsDoNotFit", Warning, ["BroadcastJob"], "Pods may not run on their nodes by their own specification, though the template allows it; something changed them when they were created. They are deleted and created again at intervals that double.";
    JOB_CONTINUES = "Continue", Normal, ["BroadcastJob"], "A paused or ended job continues.";
    JOB_PAUSED = "Paused", Warning, ["BroadcastJob"], "A pod failed, and the failure policy pauses the job.";
    JOB_FAILED_FAST = "failed pod is found", Warning, ["BroadcastJob"], "A pod failed, and the failure policy ends the job.";
    DEADLINE_EXCEEDED = "DeadlineExceeded", Warning, ["BroadcastJob", "EphemeralJob"], "The job ran longer than activeDeadlineSeconds and has failed.";
    JOB_COMPLETE = "JobComplete", Normal, ["BroadcastJob"], "Every node of the job has a pod that has ended.";
    ADDED_CONTAINERS = "AddedContainers", Normal, ["EphemeralJob"], "A pod got the ephemeral containers of the job.";
    CREATE_FAILED = "CreateFailed", Warning, ["EphemeralJob"], "A pod could not get the ephemeral containers of the job; the message is the error of the API server.";
    EPHEMERAL_SUCCEEDED = "JobSucceeded", Normal, ["EphemeralJob"], "The containers of all pods have ended with exit code 0.";
    EPHEMERAL_FAILED = "JobFailed", Warning, ["EphemeralJob"], "The containers of all pods have ended, some of them badly; the message says which.";
    MISS_SCHEDULE = "MissSchedule", Warning, ["AdvancedCronJob"], "A job was not created, because it could not start within startingDeadlineSeconds.";
    TOO_MANY_MISSED = "TooManyMissedTimes", Warning, ["AdvancedCronJob"], "More than a hundred activations had passed; a job is created for the latest one only.";
    JOB_ALREADY_ACTIVE = "JobAlreadyActive", Normal, ["AdvancedCronJob"], "A job is due and waits for the one that runs, as concurrencyPolicy Forbid asks.";
    SAW_COMPLETED_JOB = "SawCompletedJob", Normal, ["AdvancedCronJob"], "A job has ended; the message says how.";
    MISSING_JOB = "MissingJob", Normal, ["AdvancedCronJob"], "A job that ran was deleted by somebody else.";
    UNKNOWN_TIME_ZONE = "UnknownTimeZone", Warning, ["AdvancedCronJob"], "The time zone is not known; the schedule follows the zone of the manager.";
    PULL_IMAGE_FAILED = "PullImageFailed", Warning, ["ImagePullJob", "NodeImage"], "A node did not pull an image, and its agent does not respond.";
    NO_NODE = "WaitingForNodes", Normal, ["ImagePullJob"], "No node that the job selects has a NodeImage; the job waits for one.";
    PULL_SECRET_MISSING = "PullSecretMissing", Warning, ["ImagePullJob"], "A pull secret that the job names does not exist; nodes pull without it.";
    PULL_SECRET_REFUSED = "PullSecretRefused", Warning, ["ImagePullJob"], "A pull secret that the job names has a type that holds no credentials of images; it is not copied, and nodes pull without it.";
    FAILED_SECRET_COPY = "FailedCopyPullSecret", Warning, ["ImagePullJob"], "A pull secret could not be copied for the node agents; the job waits for it.";
    CHANGE_IGNORED = "ChangeIgnored", Warning, ["ImagePullJob"], "The job had ended before its specification was changed; nothing is pulled for the change.";
    CREATED_LISTED_JOB = "Successful create ImagePullJob", Normal, ["ImageListPullJob"], "A job was created for an image of the list.";
    DELETED_LISTED_JOB = "Successful delete ImagePullJob", Normal, ["ImageListPullJob"], "A job whose image left the list, or whose template changed, was deleted.";
    DISTRIBUTED = "Distributed", Normal, ["ResourceDistribution"], "Every target namespace has its copy.";
    COPY_CONFLICT = "ConflictOccurred", Warning, ["ResourceDistribution"], "Namespaces have an object with the name of the copy that the ResourceDistribution does not control; they are left as they are.";
    FAILED_COPY = "FailedDistribute", Warning, ["ResourceDistribution"], "A copy could not be created, updated or deleted; the message is the error of the API server.";
    SYSTEM_COPY_REMOVED = "SystemNamespaceCopyRemoved", Warning, ["ResourceDistribution"], "A copy was deleted in kube-system or kube-public, which OpenKruise up to version 1.9 distributed to.";
    PROBE_PORT_UNKNOWN = "ProbePortUnknown", Warning, ["PodProbeMarker"], "A probe names a port that its container does not have; these pods are not probed with it.";
    GENERATED_POD_STATE = "GeneratedPersistentPodState", Normal, ["StatefulSet"], "A PersistentPodState was created, changed or deleted as the annotations of the workload say. The workload may be of any kind that administrators list.";
    POD_STATE_NOT_GENERATED = "PersistentPodStateNotGenerated", Warning, ["StatefulSet"], "The annotations of the workload ask for a PersistentPodState, but one of that name, or one for that workload, is somebody else's and stays as it is; or it could not be written.";
    TOPOLOGY_GONE = "RequiredTopologyGone", Warning, ["PersistentPodState"], "Pods wait for a node that no longer exists: no node has the labels that are recorded for them and required.";
    WORKLOAD_UNREADABLE = "WorkloadUnreadable", Warning, ["PersistentPodState", "WorkloadSpread"], "The workload is of a kind that is not served, or that the manager may not read; its pods are not recorded or counted.";
    CREATE_POD_FAILED = "CreatePodFailed", Warning, ["WorkloadSpread"], "A pod that the webhook put into a subset was not created within 30 seconds; its place is free again.";
    DELETE_POD_FAILED = "DeletePodFailed", Warning, ["WorkloadSpread"], "A pod of a subset whose deletion was allowed was not deleted within 15 seconds, or one that no node can take could not be deleted.";
    PATCH_COST_FAILED = "PatchPodDeletionCostFailed", Warning, ["WorkloadSpread"], "The deletion cost of a pod could not be written; the message ends with the error of the API server.";
    RECOVER_SCHEDULABLE = "RecoverSchedulable", Normal, ["WorkloadSpread"], "A subset that could not take pods five minutes ago is tried again.";
    UPDATED_SUBSET = "SuccessfulUpdateSubset", Normal, ["UnitedDeployment"], "Workloads of subsets were created, or those of subsets that left the topology or of another kind deleted.";
    FAILED_UPDATE_SUBSET = "FailedUpdateSubset", Warning, ["UnitedDeployment"], "The workload of a subset could not be created, adopted, updated or deleted; the message ends with the error of the API server.";
    FAILED_REVISION = "FailedRevisionProvision", Warning, ["UnitedDeployment"], "The revision of the template could not be stored; the message is the error of the API server.";
    FAILED_DUPLICATE = "FailedDeleteDuplicatedSubsets", Warning, ["UnitedDeployment"], "A second workload of a subset could not be deleted; the message is the error of the API server.";
    FAILED_REPLICAS = "Failed SpecifySubsetReplicas", Warning, ["UnitedDeployment"], "The replicas of subsets contradict the replicas of the whole; the workloads stay as they are.";
    SIDECAR_TERMINATOR = "SidecarTerminator", Normal, ["Pod"], "The main containers of a pod have ended, and its sidecars are terminated; the message says which, and how.";
    SIDECAR_NOT_TERMINATED = "SidecarNotTerminated", Warning, ["Pod"], "A sidecar of a pod that is to end cannot be terminated, or runs again; the message says which, and what helps.";
    LEADER_ELECTION = "LeaderElection", Normal, ["Lease"], "A manager became the leader.";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{ALL, CREATED_LISTED_JOB, DELETED_LISTED_JOB, FAILED_REPLICAS, JOB_FAILED_FAST};

    #[test]
    fn every_reason_is_one_word_and_listed_once() {
        let names: BTreeSet<&str> = ALL.iter().map(|reason| reason.name).collect();
        assert_eq!(names.len(), ALL.len());
        for reason in ALL {
            // OpenKruise writes these as words, and clients match on them.
            let as_words = [
                &JOB_FAILED_FAST,
                &CREATED_LISTED_JOB,
                &DELETED_LISTED_JOB,
                &FAILED_REPLICAS,
            ];
            let word = as_words.contains(reason) || reason.name.chars().all(char::is_alphanumeric);
            assert!(
                word && reason.when.ends_with('.') && !reason.on.is_empty(),
                "{reason:?}"
            );
        }
    }
}
