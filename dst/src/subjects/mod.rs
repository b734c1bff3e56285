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
