//! The kinds: a folder each, with the registration of its controller, what that reads, and its explanation.
//! Decisions are in the `plan-*` crates.
//!
//! To add a controller: write its decisions in a `plan-*` crate, its registration in a folder beside these, and its
//! line in [`ALL`]. Caches, rights, flags, metrics, the log at the start, `kruise explain` and the reference follow
//! from the registration.

pub mod advancedcronjob;
pub mod broadcastjob;
pub mod budgets;
pub mod charges;
pub mod cloneset;
pub mod containerrecreaterequest;
pub mod daemonset;
pub mod ephemeraljob;
pub mod fits;
pub mod imagelistpulljob;
pub mod imagepulljob;
pub mod images;
pub mod launch;
pub mod nodeimage;
pub mod nodepodprobe;
mod not_yet;
pub mod persistentpodstate;
pub mod placing;
pub mod pod_marks;
pub mod pod_readiness;
pub mod podprobemarker;
pub mod podunavailablebudget;
pub mod probes;
pub mod pulls;
pub mod refusals;
pub mod resourcedistribution;
pub mod reviews;
pub mod sidecarset;
pub mod sidecarterminator;
pub mod statefulset;
pub mod uniteddeployment;
pub mod webhook_caches;
pub mod workloads;
pub mod workloadspread;

use std::sync::LazyLock;

use go_compat::flags::Flag;
use kruise_admission::kinds::KindWebhooks;
use kruise_api::definition::Kind;
use kruise_frame::{
    explain::{Explainer, has_name},
    flags::Limit,
    profile::Profile,
    registration::{Grant, Registration},
};
use kruise_plan_kit::ResourceId;
use kruise_runtime::metrics::objects::Spec;
use serde_json::Value;

pub use webhook_caches::WebhookCaches;

/// Templates of pods are created as dry runs, which is how the API server judges them.
const TEMPLATES: Grant = Grant::on(ResourceId::POD_TEMPLATES, &["create"]).unwatched();

/// All controllers, in the order in which they start.
pub static ALL: &[&Registration] = &[
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

/// The controllers of a profile.
pub fn of(profile: &Profile) -> Vec<&'static Registration> {
    let is_part = |registration: &&Registration| registration.kind.is_none_or(|kind| profile.includes(kind));
    ALL.iter().copied().filter(is_part).collect()
}

/// The kinds of a profile that have a controller.
pub fn reconciled(profile: &Profile) -> Vec<&'static Kind> {
    let registrations = of(profile).into_iter();
    registrations
        .filter_map(|registration| registration.kind)
        .collect()
}

/// Every kind that is served, by group and name.
pub fn kinds() -> &'static [&'static Kind] {
    static KINDS: LazyLock<Vec<&'static Kind>> = LazyLock::new(|| {
        let mut kinds: Vec<_> = ALL.iter().filter_map(|registration| registration.kind).collect();
        kinds.sort_by_key(|kind| (kind.group, kind.kind));
        kinds
    });
    &KINDS
}

/// The webhooks of all kinds, by kind.
pub fn webhooks() -> &'static [&'static KindWebhooks] {
    static WEBHOOKS: LazyLock<Vec<&'static KindWebhooks>> = LazyLock::new(|| {
        let mut webhooks: Vec<_> = ALL
            .iter()
            .filter_map(|registration| registration.webhooks)
            .collect();
        webhooks.sort_by_key(|webhooks| webhooks.kind.kind);
        webhooks
    });
    &WEBHOOKS
}

/// The definitions of all kinds. `namespace` is where the service of the conversion webhook is.
pub fn definitions(namespace: &str) -> Vec<Value> {
    kruise_api::kinds::definitions(kinds(), namespace)
}

/// The profile of the plural names in a text, separated by commas; all kinds if it is empty.
pub fn profile(text: &str) -> Result<Profile, String> {
    Profile::parse(text, kinds())
}

/// What explains a kind that kubectl accepts under this name.
pub fn explainer(name: &str) -> Option<Explainer> {
    explainers().find_map(|(kind, explain)| has_name(kind, name).then_some(explain))
}

/// The kinds that can be explained, with the function that does it.
pub fn explainers() -> impl Iterator<Item = (&'static Kind, Explainer)> {
    let registrations = ALL.iter();
    registrations.filter_map(|registration| Some((registration.kind?, registration.explain?)))
}

/// The flags of all controllers, then those of upstream's controllers that are not built yet.
pub fn flags() -> Vec<Flag> {
    let ours: Vec<Flag> = ALL.iter().flat_map(|registration| registration.flags()).collect();
    let others = not_yet::FLAGS.iter().copied();
    let others: Vec<Flag> = others
        .filter(|flag| !ours.iter().any(|have| have.name == flag.name))
        .collect();
    ours.into_iter().chain(others).collect()
}

/// The limits of the flags of all controllers.
pub fn limits() -> impl Iterator<Item = &'static Limit> {
    ALL.iter().flat_map(|registration| registration.limits)
}

/// The metrics that controllers declare.
pub fn metrics() -> Vec<&'static Spec> {
    let declared = ALL.iter().flat_map(|registration| {
        let overdue = registration.overdue.into_iter();
        overdue.chain(registration.metrics.iter().copied())
    });
    declared.collect()
}

#[cfg(test)]
mod tests {
    use kruise_frame::gates::Gates;

    use super::*;

    #[test]
    fn each_kind_and_webhook_of_the_crates_below_is_registered() {
        let names = |kinds: &[&Kind]| -> Vec<String> { kinds.iter().map(|kind| kind.name()).collect() };
        for name in names(&kruise_api::kinds::ALL) {
            assert!(names(kinds()).contains(&name), "{name}");
        }
        for below in kruise_admission::kinds::ALL {
            assert!(webhooks().iter().any(|one| one.kind.name() == below.kind.name()));
        }
    }

    #[test]
    fn without_its_gate_or_the_daemon_no_sidecar_is_terminated() {
        let on = |flag: &str| {
            let gates = Gates::parse(flag, "").unwrap();
            sidecarterminator::REGISTRATION.is_on(&gates)
        };
        assert!(!on("") && on("SidecarTerminator=true"));
        assert!(!on("KruiseDaemon=false,SidecarTerminator=true"));
    }

    #[test]
    fn a_profile_has_its_kinds_and_the_controllers_of_all_pods() {
        let all = Profile::default();
        assert_eq!(of(&all).len(), ALL.len());
        let one = profile("clonesets").unwrap();
        assert_eq!(
            one.of_kinds(kinds()).map(|kind| kind.kind).collect::<Vec<_>>(),
            ["CloneSet"]
        );
        assert_eq!(reconciled(&one).len(), 1);
        let mut without_kind = ALL.iter().filter(|one| one.kind.is_none());
        assert!(without_kind.all(|other| of(&one).iter().any(|have| have.name == other.name)));
        assert!(
            one.has("", "pods")
                && !one.has("apps.kruise.io", "statefulsets")
                && one.has("apps", "statefulsets")
        );
        let two = profile(" clonesets, sidecarsets").unwrap();
        assert_eq!(two.to_string(), "clonesets,sidecarsets");
        let error = profile("deployments").unwrap_err();
        assert!(
            error.contains("\"deployments\"") && error.contains("clonesets"),
            "{error}"
        );
    }
}
