//! What is simulated: a folder for each kind, and what several of them share.

pub mod advancedcronjob;
pub mod broadcastjob;
pub mod cloneset;
pub mod daemonset;
pub mod deployment;
pub mod ephemeraljob;
pub mod fit;
pub mod hooks;
pub mod knowledge;
pub mod labels;
pub mod nodes;
pub mod pod_writes;
pub mod podunavailablebudget;
pub mod registration;
pub mod settled;
pub mod sidecarset;
pub mod statefulset;
pub mod template;

use crate::engine::subject::Subjects;

/// All subjects. A seed belongs to the last one that draws a scenario of it.
pub const ALL: Subjects = Subjects(&[
    &cloneset::CloneSet,
    &deployment::Deployment,
    &podunavailablebudget::PodUnavailableBudget,
    &statefulset::StatefulSet,
    &sidecarset::SidecarSet,
    &daemonset::DaemonSet,
    &broadcastjob::BroadcastJob,
    &advancedcronjob::AdvancedCronJob,
    &ephemeraljob::EphemeralJob,
]);
