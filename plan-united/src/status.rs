//! What a UnitedDeployment reports.

use jiff::Timestamp;
use kruise_api::{
    names::{
        conditions::{
            ERROR, SUBSET_PROVISIONED, SUBSET_UPDATED, UNITED_REVISION_UPDATED, UNITED_REVISION_UPDATING,
            UNITED_UPDATED,
        },
        uniteddeployment::RESERVED_POD,
    },
    uniteddeployment::{UnitedDeployment, UnitedDeploymentStatus},
};
use kruise_plan_kit::{Owner, StatusPatch, Urgency, injected::is_injected, status_patch};
use kruise_views::PodView;

use crate::{
    conditions,
    pods::{is_of, is_ready},
    revision::Revisions,
    scheduling,
    snapshot::Workload,
    subsets::Subsets,
};

/// The status that a plan begins with: revisions, counts and an entry for each subset.
pub(crate) fn begin(
    united: &UnitedDeployment,
    revisions: &Revisions,
    subsets: &Subsets<'_>,
    now: Timestamp,
) -> UnitedDeploymentStatus {
    let mut status = united.status.clone();
    let strategy = &united.spec.topology.schedule_strategy;
    let has_others = !status.subset_statuses.is_empty();
    for subset in &united.spec.topology.subsets {
        let mut entries = status.subset_statuses.iter();
        if !entries.any(|entry| entry.name == subset.name) {
            let entry = scheduling::entry(&subset.name, strategy, has_others, now);
            status.subset_statuses.push(entry);
        }
    }
    // An older version has maps of the same numbers, from which a merge patch of the list removes nothing.
    let keeps_all = united.api_version.ends_with("/v1alpha1");
    status.subset_statuses.retain(|entry| {
        let mut topology = united.spec.topology.subsets.iter();
        keeps_all
            || topology.any(|subset| subset.name == entry.name)
            || subsets.current.contains_key(&*entry.name)
    });
    status.observed_generation = united.metadata.generation;
    status.current_revision.clone_from(&revisions.current);
    status.updated_revision.clone_from(&revisions.updated);
    let revision = &revisions.updated;
    let (reason, message, is) = if revisions.current == revisions.updated {
        (
            UNITED_REVISION_UPDATED,
            format!("updated to revision {revision}"),
            "True",
        )
    } else {
        (
            UNITED_REVISION_UPDATING,
            format!("updating to revision {revision}"),
            "False",
        )
    };
    conditions::set(&mut status.conditions, UNITED_UPDATED, (is, reason), message, now);
    status.label_selector = united.spec.selector.to_query();
    if strategy.reserves() {
        status.label_selector = format!(
            "{},{RESERVED_POD}={}",
            status.label_selector,
            scheduling::text(false)
        );
    }
    count(&mut status, revisions, subsets);
    status
}

fn count(status: &mut UnitedDeploymentStatus, revisions: &Revisions, subsets: &Subsets<'_>) {
    let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let workloads = || subsets.current.values().map(|found| found.workload);
    let sum = |of: fn(&Workload) -> i32| workloads().map(of).fold(0, i32::saturating_add);
    let updated = || {
        let pods = workloads().flat_map(|workload| &workload.pods);
        let counts = |pod: &PodView| is_of(pod, &revisions.updated) || is_injected("UpdatedMiscounted");
        pods.filter(move |pod| pod.is_active() && counts(pod))
    };
    status.replicas = sum(|workload| workload.view.replicas);
    status.ready_replicas = sum(|workload| workload.view.ready);
    status.updated_replicas = number(updated().count());
    status.updated_ready_replicas = number(updated().filter(|pod| is_ready(pod)).count());
    for entry in &mut status.subset_statuses {
        let found = subsets.current.get(&*entry.name);
        entry.ready_replicas = found.map_or(0, |found| found.workload.view.ready);
        entry.reserved_pods = 0;
    }
}

/// Adds up the reserved pods, and notes that the newest revision is rolled out in full.
pub(crate) fn complete(status: &mut UnitedDeploymentStatus) {
    let reserved = status.subset_statuses.iter().map(|entry| entry.reserved_pods);
    status.reserved_pods = reserved.fold(0, i32::saturating_add);
    status.replicas = status.replicas.saturating_sub(status.reserved_pods).max(0);
    if status.updated_ready_replicas >= status.replicas {
        status.current_revision.clone_from(&status.updated_revision);
    }
}

/// Whether the workloads of all subsets are there.
pub(crate) fn provisioned(status: &mut UnitedDeploymentStatus, problem: Option<&str>, now: Timestamp) {
    report(status, SUBSET_PROVISIONED, problem, now);
}

/// Whether the workloads of all subsets are what they are to be.
pub(crate) fn updated(status: &mut UnitedDeploymentStatus, problem: Option<&str>, now: Timestamp) {
    report(status, SUBSET_UPDATED, problem, now);
}

fn report(status: &mut UnitedDeploymentStatus, kind: &str, problem: Option<&str>, now: Timestamp) {
    let state = if problem.is_some() {
        ("False", ERROR)
    } else {
        ("True", "")
    };
    let message = problem.unwrap_or_default().to_owned();
    conditions::set(&mut status.conditions, kind, state, message, now);
}

/// The write of the status, if it differs from what is stored.
pub(crate) fn patch(
    united: &UnitedDeployment,
    owner: &Owner<'_>,
    status: &UnitedDeploymentStatus,
) -> Option<StatusPatch> {
    let stored = &united.status;
    let urgency = Urgency {
        members: &[
            "conditions",
            "currentRevision",
            "labelSelector",
            "updatedRevision",
        ],
        settled: status.updated_ready_replicas == united.spec.total(),
    };
    let target = owner.target(kruise_api::uniteddeployment::RESOURCE, owner.name);
    let before = (!stored.current_revision.is_empty()).then_some(stored);
    status_patch(target, &united.metadata.resource_version, before, status, urgency)
}
