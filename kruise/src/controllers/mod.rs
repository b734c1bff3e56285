//! The controllers: one registration each, and the list of them.
//!
//! To add a controller: write its decisions in a `plan-*` crate, its registration in a file beside these, and its line in
//! [`ALL`]. Caches, rights, flags, metrics, the log at the start, `kruise explain` and the reference follow from the
//! registration. Nothing else in the manager names a kind.

pub mod advancedcronjob;
pub mod broadcastjob;
pub mod budgets;
pub mod caches;
pub mod cloneset;
pub mod containerrecreaterequest;
pub mod daemonset;
pub mod ephemeraljob;
pub mod fits;
pub mod imagelistpulljob;
pub mod imagepulljob;
pub mod images;
mod invalid_spec;
pub mod launch;
mod listed;
pub mod nodeimage;
pub mod nodepodprobe;
mod not_yet;
pub mod parsed;
pub mod persistentpodstate;
pub mod placing;
pub mod pod_marks;
pub mod pod_readiness;
pub mod podprobemarker;
pub mod podunavailablebudget;
pub mod probes;
pub mod resourcedistribution;
pub mod reviews;
pub mod sidecarset;
pub mod sidecarterminator;
pub mod statefulset;
pub mod uniteddeployment;
pub mod webhook_caches;
pub mod workloadspread;

use go_compat::flags::Flag;
use kruise_api::definition::Kind;
use kruise_plan_kit::ResourceId;
use kruise_runtime::metrics::objects::Spec;

use crate::{
    manager::{Grant, Limit, Registration},
    refusals,
};

pub use webhook_caches::WebhookCaches;

/// Templates of pods are created as dry runs, which is how the API server judges them.
const TEMPLATES: Grant = Grant::on(ResourceId::POD_TEMPLATES, &["create"]).unwatched();

/// All controllers, in the order in which they start.
pub static ALL: [&Registration; 21] = [
    &cloneset::REGISTRATION,
    &statefulset::REGISTRATION,
    &daemonset::REGISTRATION,
    &broadcastjob::REGISTRATION,
    &sidecarset::REGISTRATION,
    &pod_readiness::REGISTRATION,
    &launch::REGISTRATION,
    &podunavailablebudget::REGISTRATION,
    &advancedcronjob::REGISTRATION,
    &ephemeraljob::REGISTRATION,
    &nodeimage::REGISTRATION,
    &imagepulljob::REGISTRATION,
    &imagelistpulljob::REGISTRATION,
    &resourcedistribution::REGISTRATION,
    &persistentpodstate::REGISTRATION,
    &nodepodprobe::REGISTRATION,
    &podprobemarker::REGISTRATION,
    &containerrecreaterequest::REGISTRATION,
    &sidecarterminator::REGISTRATION,
    &uniteddeployment::REGISTRATION,
    &workloadspread::REGISTRATION,
];

/// The kinds with a controller.
fn kinds() -> Vec<&'static Kind> {
    let kinds = ALL.into_iter().filter_map(|registration| registration.kind);
    kinds.collect()
}

/// The kinds without a controller, which are served and stored only.
pub fn kinds_without_controller() -> impl Iterator<Item = &'static Kind> {
    let reconciled = kinds();
    let has_controller = move |kind: &Kind| {
        let mut kinds = reconciled.iter();
        kinds.any(|other| other.kind == kind.kind && other.group == kind.group)
    };
    kruise_api::kinds::ALL
        .into_iter()
        .filter(move |kind| !has_controller(kind))
}

/// The flags of all controllers, then those of upstream's controllers that are not built yet.
pub fn flags() -> Vec<Flag> {
    let ours: Vec<Flag> = ALL.into_iter().flat_map(Registration::flags).collect();
    let others = not_yet::FLAGS.iter().copied();
    let others: Vec<Flag> = others
        .filter(|flag| !ours.iter().any(|have| have.name == flag.name))
        .collect();
    ours.into_iter().chain(others).collect()
}

/// The limits of the flags of all controllers.
pub fn limits() -> impl Iterator<Item = &'static Limit> {
    ALL.into_iter().flat_map(|registration| registration.limits)
}

/// The metrics that controllers and guards declare.
pub fn metrics() -> Vec<&'static Spec> {
    let declared = ALL.into_iter().flat_map(|registration| {
        let overdue = registration.overdue.into_iter();
        overdue.chain(registration.metrics.iter().copied())
    });
    declared.chain(refusals::METRICS).collect()
}
