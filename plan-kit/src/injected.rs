//! Injected bugs, which the simulation must find: a test of the tests.
//!
//! They exist only in builds with the feature `injected-bugs`, which nothing but the simulation's own feature of that name
//! turns on, and so `cargo test` of the simulation or of the whole workspace. In all other builds [`is_injected`] is a
//! constant, and the code behind it is not compiled in.

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Plans are made before their own writes are seen.
    GateOff,
    /// Deletions do not name the uid.
    UidDropped,
    /// Names of pods are drawn.
    RandomNames,
    /// After a start the first list may be an old one.
    StaleListTrusted,
    /// The status reports what is planned, not what is there.
    StatusBeforePods,
    /// Pods are put into service before their containers changed.
    ReadyBeforeCompletion,
    /// A creation without an answer is repeated under another name.
    LostReplyRetried,
    /// One pod more than the partition allows.
    PartitionOffByOne,
    /// Nobody asks for the lease.
    TwoLeaders,
    /// All pods are created at once.
    SlowStartOff,
    /// The key of a hook stays on a pod that the hook holds no more.
    HookKeyLeft,
    /// Claims are deleted while their pod lives, if nothing reuses them.
    ClaimOfLivePod,
    /// Images change before the grace period is over.
    GraceIgnored,
    /// A SidecarSet takes one pod more out of service than it may.
    SetUnavailableOffByOne,
    /// A SidecarSet keeps no pods as they are.
    SetPartitionIgnored,
    /// The old twin idles before the new one serves.
    HotBeforeReady,
    /// Writes of a SidecarSet are for any version of a pod.
    SetVersionDropped,
    /// A SidecarSet upgrades while it is paused.
    SetPausedIgnored,
    /// A pod is labelled as updated before its containers are resized.
    ResizeAfterPodWrite,
    /// A container is ready because the one before it was.
    ReadinessInherited,
    /// Pods are deleted at once, so that the next one of an ordinal may run beside the one before.
    GraceOfPodsDropped,
    /// A StatefulSet gives reserved ordinals away.
    ReservedOrdinalGiven,
    /// The pods of an ordered StatefulSet change together.
    OrderIgnored,
    /// A claim of a StatefulSet goes with its pod, though the ordinal is wanted.
    ClaimOfSlotGiven,
    /// Claims are to grow whether their class allows it or not.
    ResizeUnchecked,
    /// A node gets another pod of a DaemonSet while one is being deleted.
    NodePodTwice,
    /// More nodes have an old and a new pod than a DaemonSet allows.
    SurgeUnbounded,
    /// One node more is updated than the partition of a DaemonSet allows.
    NodePartitionOffByOne,
    /// Nodes with a taint that its pods do not tolerate get pods of a DaemonSet.
    IneligibleNodeGiven,
    /// A DaemonSet takes the pod of one node more out of service than it may.
    NodesUnavailableOffByOne,
    /// A DaemonSet updates nodes that its selector leaves out.
    NodeSelectorIgnored,
    /// A DaemonSet creates, deletes and updates all pods in one step.
    BurstIgnored,
    /// The name of a DaemonSet's pod does not depend on its node.
    NameForSeveralNodes,
    /// A DaemonSet recreates what it could update in place.
    InPlaceForgotten,
    /// A node whose pod of a BroadcastJob has ended gets another one.
    NodeRunTwice,
    /// A BroadcastJob that has ended creates pods for new nodes.
    EndedJobRuns,
    /// A BroadcastJob runs one pod more than its parallelism allows.
    ParallelismOffByOne,
    /// A BroadcastJob goes on though a failed pod is to pause it.
    FailedPodPausesNothing,
    /// A BroadcastJob goes on though a failed pod is to end it.
    FailedPodEndsNothing,
    /// A BroadcastJob does not count restarts.
    RestartsUncounted,
    /// A BroadcastJob fails five seconds before its deadline.
    DeadlineEarly,
    /// A BroadcastJob is deleted five seconds before its time to live is over.
    TimeToLiveCut,
    /// A charge takes nothing from what a budget allows.
    ChargeUnpaid,
    /// A dry run is charged.
    DryRunCharged,
    /// A request passes although its charge lost a race.
    LostRaceCharged,
    /// A request passes before its charge is stored.
    ChargeAfterRequest,
    /// A plan takes pods out of service without asking their budgets.
    BudgetUnasked,
    /// The last activation is that of the jobs that there are, as OpenKruise finds it.
    ActivationForgotten,
    /// An activation is recorded before its job is created.
    RecordedBeforeCreated,
    /// Jobs are deleted before their activation is recorded.
    DeletedUnrecorded,
    /// A job that is due does not wait for the one that runs.
    ForbidIgnored,
    /// An EphemeralJob adds its containers to one pod more than its parallelism allows.
    PodsAtOnceOffByOne,
    /// An EphemeralJob that has ended goes on with the next pods.
    EndedContainersAdded,
    /// An EphemeralJob of which some pods succeeded and others failed has no end.
    MixedResultsUnended,
    /// An EphemeralJob takes more pods than its replicas.
    ReplicasIgnored,
    /// An ImagePullJob has one node more pull than its parallelism allows.
    NodesAtOnceOffByOne,
    /// The first ImagePullJob that ends deletes the copy of a secret, although another job needs it.
    NeededCopyDeleted,
    /// An ImagePullJob writes the images of a node as they were when it planned.
    PullsOverwritten,
    /// A tag is removed from a node with the first of the jobs that want it.
    SharedTagRemoved,
    /// A PersistentPodState records the node of a pod that is not Ready.
    UnreadyPodRecorded,
    /// A PersistentPodState forgets a pod that was scaled in and still runs.
    RunningPodForgotten,
    /// A new pod gets the labels that are required of its node, and not those that are preferred.
    PreferenceDropped,
    /// A PersistentPodState of a workload's name follows its annotations, whoever made it, as with OpenKruise.
    ForeignStateTaken,
    /// A PodProbeMarker that is deleted takes the probes of markers with it whose names end in its own.
    OtherProbesRemoved,
    /// Probes of a node are removed from the list as it was when that was planned.
    ProbesOverwritten,
    /// A ContainerRecreateRequest that has ended leaves its key on the pod.
    RequestKeyLeft,
    /// The grace period of a ContainerRecreateRequest begins before its pod is out of service.
    GraceBeforeUnready,
    /// A pod that comes into a subset of a WorkloadSpread is recorded, and not counted.
    SlotUncounted,
    /// A webhook writes its counts over those that another replica has stored meanwhile.
    SlotsOverwritten,
    /// Pods get the annotation of their subset, and not its node selector.
    SubsetTermForgotten,
    /// The last subset that has room is filled first.
    LastSubsetFirst,
    /// A pod keeps the deletion cost that it once got.
    CostKept,
    /// Records of pods that never come are looked at only when something else changes.
    EntriesKept,
    /// A UnitedDeployment takes workloads that somebody else controls for its own.
    OthersTaken,
    /// A subset of a UnitedDeployment gets one pod less than its share.
    ShareLost,
    /// A workload of a UnitedDeployment gets the name of a new revision, and keeps the template of the one before.
    TemplateOfBefore,
    /// A UnitedDeployment writes the time of each plan into its conditions.
    StatusRestless,
    /// A UnitedDeployment counts pods of all revisions as updated.
    UpdatedMiscounted,
    /// No pod of a subset stays at an older revision, whatever the partitions of its UnitedDeployment say.
    SubsetPartitionIgnored,
    /// Replicas of subsets that contradict those of their UnitedDeployment leave no pod at all.
    ContradictionIgnored,
    /// A UnitedDeployment creates another workload for a subset whose workload has no pods.
    SubsetTwice,
    /// A UnitedDeployment deletes workloads that are to have no pods.
    EmptySubsetDeleted,
    /// A UnitedDeployment deletes old revisions that its workloads and their pods are of.
    UsedRevisionDeleted,
    /// A node agent that starts anew forgets which containers were stopped for a request.
    StopForgotten,
    /// A node agent stops containers before it has stored that it does.
    StopUnstored,
    /// A node agent stops the containers of an ordered request together.
    StopsTogether,
    /// A node agent does not wait until the grace period out of service is over.
    StopInService,
    /// Sidecars are stopped when the first main container of their pod has ended.
    OneMainAwaited,
    /// A main container that failed and is started again is taken for one that has ended.
    FailureTakenForEnd,
    /// A pod whose sidecars do not count has succeeded, whatever its main containers ended with.
    PhaseOfPodAssumed,
    /// A sidecar is requested to stop while a request for it is at work.
    TerminatedTwice,
    /// Sidecars whose exit codes do not count are stopped with the others.
    IgnoredWithOthers,
    /// A node agent that starts anew pulls what one before it has pulled for the same job.
    EndedPullRepeated,
    /// A node agent takes the end of a pull that failed for the image.
    FailedPullConfirmed,
    /// A node agent does not count pulls that failed.
    PullFailuresUncounted,
    /// `kruise restart` takes one pod more out of service than the workload allows.
    RestartsOffByOne,
    /// `kruise restart` does not count the open requests of an earlier run.
    OpenRequestsIgnored,
    /// `kruise restart` goes on after a request has failed.
    FailedRestartIgnored,
    /// `kruise restart` does not wait until a pod whose containers run anew is available again.
    RestartedPodUnawaited,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 99] = [
        Self::GateOff,
        Self::UidDropped,
        Self::RandomNames,
        Self::StaleListTrusted,
        Self::StatusBeforePods,
        Self::ReadyBeforeCompletion,
        Self::LostReplyRetried,
        Self::PartitionOffByOne,
        Self::TwoLeaders,
        Self::SlowStartOff,
        Self::HookKeyLeft,
        Self::ClaimOfLivePod,
        Self::GraceIgnored,
        Self::SetUnavailableOffByOne,
        Self::SetPartitionIgnored,
        Self::HotBeforeReady,
        Self::SetVersionDropped,
        Self::SetPausedIgnored,
        Self::ResizeAfterPodWrite,
        Self::ReadinessInherited,
        Self::GraceOfPodsDropped,
        Self::ReservedOrdinalGiven,
        Self::OrderIgnored,
        Self::ClaimOfSlotGiven,
        Self::ResizeUnchecked,
        Self::NodePodTwice,
        Self::SurgeUnbounded,
        Self::NodePartitionOffByOne,
        Self::IneligibleNodeGiven,
        Self::NodesUnavailableOffByOne,
        Self::NodeSelectorIgnored,
        Self::BurstIgnored,
        Self::NameForSeveralNodes,
        Self::InPlaceForgotten,
        Self::NodeRunTwice,
        Self::EndedJobRuns,
        Self::ParallelismOffByOne,
        Self::FailedPodPausesNothing,
        Self::FailedPodEndsNothing,
        Self::RestartsUncounted,
        Self::DeadlineEarly,
        Self::TimeToLiveCut,
        Self::ChargeUnpaid,
        Self::DryRunCharged,
        Self::LostRaceCharged,
        Self::ChargeAfterRequest,
        Self::BudgetUnasked,
        Self::ActivationForgotten,
        Self::RecordedBeforeCreated,
        Self::DeletedUnrecorded,
        Self::ForbidIgnored,
        Self::PodsAtOnceOffByOne,
        Self::EndedContainersAdded,
        Self::MixedResultsUnended,
        Self::ReplicasIgnored,
        Self::NodesAtOnceOffByOne,
        Self::NeededCopyDeleted,
        Self::PullsOverwritten,
        Self::SharedTagRemoved,
        Self::UnreadyPodRecorded,
        Self::RunningPodForgotten,
        Self::PreferenceDropped,
        Self::ForeignStateTaken,
        Self::OtherProbesRemoved,
        Self::ProbesOverwritten,
        Self::RequestKeyLeft,
        Self::GraceBeforeUnready,
        Self::SlotUncounted,
        Self::SlotsOverwritten,
        Self::SubsetTermForgotten,
        Self::LastSubsetFirst,
        Self::CostKept,
        Self::EntriesKept,
        Self::OthersTaken,
        Self::ShareLost,
        Self::TemplateOfBefore,
        Self::StatusRestless,
        Self::UpdatedMiscounted,
        Self::SubsetPartitionIgnored,
        Self::ContradictionIgnored,
        Self::SubsetTwice,
        Self::EmptySubsetDeleted,
        Self::UsedRevisionDeleted,
        Self::StopForgotten,
        Self::StopUnstored,
        Self::StopsTogether,
        Self::StopInService,
        Self::OneMainAwaited,
        Self::FailureTakenForEnd,
        Self::PhaseOfPodAssumed,
        Self::TerminatedTwice,
        Self::IgnoredWithOthers,
        Self::EndedPullRepeated,
        Self::FailedPullConfirmed,
        Self::PullFailuresUncounted,
        Self::RestartsOffByOne,
        Self::OpenRequestsIgnored,
        Self::FailedRestartIgnored,
        Self::RestartedPodUnawaited,
    ];
}

#[cfg(feature = "injected-bugs")]
mod active {
    use std::cell::Cell;

    use super::Bug;

    thread_local! {
        static ACTIVE: Cell<Option<Bug>> = const { Cell::new(None) };
        static DRAWN: Cell<u64> = const { Cell::new(0) };
    }

    /// Injects a bug into this thread, or none.
    pub fn inject(bug: Option<Bug>) {
        ACTIVE.set(bug);
        DRAWN.set(0);
    }

    /// Is this bug active here?
    pub fn is_injected(bug: Bug) -> bool {
        ACTIVE.get() == Some(bug)
    }

    /// Another number at every call.
    pub fn draw() -> u64 {
        DRAWN.set(DRAWN.get() + 1);
        DRAWN.get()
    }
}

#[cfg(feature = "injected-bugs")]
pub use active::{draw, inject, is_injected};

/// Is this bug active here? Never, in this build.
#[cfg(not(feature = "injected-bugs"))]
pub const fn is_injected(_: Bug) -> bool {
    false
}

/// Another number at every call; not in this build.
#[cfg(not(feature = "injected-bugs"))]
pub const fn draw() -> u64 {
    0
}
