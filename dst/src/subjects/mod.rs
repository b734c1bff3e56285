//! What is simulated: a folder for each kind, and what several of them share.

pub mod advancedcronjob;
pub mod broadcastjob;
pub mod cloneset;
pub mod containerrecreaterequest;
pub mod daemonset;
pub mod deployment;
pub mod ephemeraljob;
pub mod hooks;
pub mod imagepulljob;
pub mod node_agents;
pub mod nodes;
pub mod persistentpodstate;
pub mod podprobemarker;
pub mod podunavailablebudget;
pub mod resourcedistribution;
pub mod restart;
pub mod sidecarset;
pub mod sidecarterminator;
pub mod statefulset;
pub mod uniteddeployment;
pub mod workloadspread;

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
