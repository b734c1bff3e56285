//! What is simulated: a folder for each kind, and what several of them share.

mod advancedcronjob;
mod broadcastjob;
pub(crate) mod cloneset;
mod containerrecreaterequest;
mod daemonset;
mod deployment;
mod ephemeraljob;
pub(crate) mod hooks;
mod imagepulljob;
mod node_agents;
mod nodes;
mod persistentpodstate;
mod podprobemarker;
mod podunavailablebudget;
mod resourcedistribution;
mod restart;
mod sidecarset;
mod sidecarterminator;
mod statefulset;
mod templates;
mod uniteddeployment;
mod workloadspread;

use crate::engine::subject::Subjects;

/// All subjects.
pub const ALL: Subjects = Subjects(&[
    &cloneset::SUBJECT,
    &deployment::SUBJECT,
    &podunavailablebudget::SUBJECT,
    &statefulset::SUBJECT,
    &sidecarset::SUBJECT,
    &daemonset::SUBJECT,
    &broadcastjob::SUBJECT,
    &advancedcronjob::SUBJECT,
    &ephemeraljob::SUBJECT,
    &imagepulljob::SUBJECT,
    &resourcedistribution::SUBJECT,
    &persistentpodstate::SUBJECT,
    &podprobemarker::SUBJECT,
    &containerrecreaterequest::SUBJECT,
    &workloadspread::SUBJECT,
    &uniteddeployment::SUBJECT,
    &sidecarterminator::SUBJECT,
    &restart::SUBJECT,
]);

/// The subject whose scenarios show an injected bug.
#[cfg(feature = "injected-bugs")]
pub fn shows(bug: kruise_plan_kit::injected::Bug) -> &'static str {
    use kruise_plan_kit::injected::Bug;
    match bug {
        Bug::ReservedOrdinalGiven | Bug::OrderIgnored | Bug::ClaimOfSlotGiven | Bug::ResizeUnchecked => {
            "statefulset"
        }
        Bug::SetUnavailableOffByOne
        | Bug::SetPartitionIgnored
        | Bug::HotBeforeReady
        | Bug::SetVersionDropped
        | Bug::SetPausedIgnored => "sidecarset",
        Bug::NodePodTwice
        | Bug::SurgeUnbounded
        | Bug::NodePartitionOffByOne
        | Bug::IneligibleNodeGiven
        | Bug::NodesUnavailableOffByOne
        | Bug::NodeSelectorIgnored
        | Bug::BurstIgnored
        | Bug::NameForSeveralNodes
        | Bug::PredecessorsName
        | Bug::SurplusKept
        | Bug::InPlaceForgotten => "daemonset",
        Bug::NodeRunTwice
        | Bug::EndedJobRuns
        | Bug::ParallelismOffByOne
        | Bug::FailedPodPausesNothing
        | Bug::FailedPodEndsNothing
        | Bug::RestartsUncounted
        | Bug::DeadlineEarly
        | Bug::TimeToLiveCut => "broadcastjob",
        Bug::ChargeUnpaid
        | Bug::DryRunCharged
        | Bug::LostRaceCharged
        | Bug::ChargeAfterRequest
        | Bug::BudgetUnasked => "podunavailablebudget",
        Bug::ActivationForgotten
        | Bug::RecordedBeforeCreated
        | Bug::DeletedUnrecorded
        | Bug::ForbidIgnored => "advancedcronjob",
        Bug::PodsAtOnceOffByOne
        | Bug::EndedContainersAdded
        | Bug::MixedResultsUnended
        | Bug::ReplicasIgnored => "ephemeraljob",
        Bug::NodesAtOnceOffByOne
        | Bug::NeededCopyDeleted
        | Bug::PullsOverwritten
        | Bug::SharedTagRemoved
        | Bug::EndedPullRepeated
        | Bug::FailedPullConfirmed
        | Bug::PullFailuresUncounted => "imagepulljob",
        Bug::UnreadyPodRecorded
        | Bug::RunningPodForgotten
        | Bug::PreferenceDropped
        | Bug::ForeignStateTaken => "persistentpodstate",
        Bug::OtherProbesRemoved | Bug::ProbesOverwritten => "podprobemarker",
        Bug::RequestKeyLeft
        | Bug::GraceBeforeUnready
        | Bug::StopForgotten
        | Bug::StopUnstored
        | Bug::StopsTogether
        | Bug::StopInService => "containerrecreaterequest",
        Bug::OneMainAwaited
        | Bug::FailureTakenForEnd
        | Bug::PhaseOfPodAssumed
        | Bug::TerminatedTwice
        | Bug::IgnoredWithOthers => "sidecarterminator",
        Bug::SlotUncounted
        | Bug::AdoptionPolled
        | Bug::SlotsOverwritten
        | Bug::SubsetTermForgotten
        | Bug::LastSubsetFirst
        | Bug::CostKept
        | Bug::EntriesKept => "workloadspread",
        Bug::OthersTaken
        | Bug::ShareLost
        | Bug::TemplateOfBefore
        | Bug::StatusRestless
        | Bug::UpdatedMiscounted
        | Bug::SubsetPartitionIgnored
        | Bug::ContradictionIgnored
        | Bug::SubsetTwice
        | Bug::EmptySubsetDeleted
        | Bug::UsedRevisionDeleted => "uniteddeployment",
        Bug::RestartsOffByOne
        | Bug::OpenRequestsIgnored
        | Bug::FailedRestartIgnored
        | Bug::RestartedPodUnawaited => "restart",
        Bug::RefusedCopiesFirst => "resourcedistribution",
        _ => "cloneset",
    }
}
