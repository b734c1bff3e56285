//! The controllers: one registration each, and one list of them.
//!
//! To add a controller: write its decisions in a `plan-*` crate, its registration in a file beside these, and its line in
//! [`ALL`]. Caches, rights, flags, metrics, the line at the start, `kruise explain` and the reference follow from the
//! registration; nothing else of the manager names a kind.

pub mod caches;
pub mod cloneset;
pub mod launch;
pub mod lookups;
mod not_yet;
pub mod pod_readiness;
pub mod reviews;
pub mod sidecarset;

use go_compat::flags::Flag;
use kruise_api::definition::Kind;
use kruise_runtime::metrics::objects::Spec;

use crate::manager::Registration;

pub use lookups::Lookups;

/// Every controller of this build, in the order in which they start.
pub static ALL: [&Registration; 4] = [
    &cloneset::REGISTRATION,
    &sidecarset::REGISTRATION,
    &pod_readiness::REGISTRATION,
    &launch::REGISTRATION,
];

/// The kinds that a controller acts on.
pub fn kinds() -> Vec<&'static Kind> {
    let kinds = ALL.into_iter().filter_map(|registration| registration.kind);
    kinds.collect()
}

/// The kinds that are served and stored, and that nothing of this build acts on.
pub fn kinds_without() -> impl Iterator<Item = &'static Kind> {
    let acted_on = |kind: &Kind| {
        kinds()
            .iter()
            .any(|other| other.kind == kind.kind && other.group == kind.group)
    };
    kruise_api::kinds::ALL
        .into_iter()
        .filter(move |kind| !acted_on(kind))
}

/// The flags of all controllers, then those of controllers that this build does not have.
pub fn flags() -> Vec<Flag> {
    let ours: Vec<Flag> = ALL.into_iter().flat_map(Registration::flags).collect();
    let others = not_yet::FLAGS.iter().copied();
    let others: Vec<Flag> = others
        .filter(|flag| !ours.iter().any(|have| have.name == flag.name))
        .collect();
    ours.into_iter().chain(others).collect()
}

/// The metrics that controllers declare.
pub fn metrics() -> Vec<&'static Spec> {
    let declared = ALL.into_iter().flat_map(|registration| {
        let overdue = registration.overdue.into_iter();
        overdue.chain(registration.metrics.iter().copied())
    });
    declared.collect()
}
