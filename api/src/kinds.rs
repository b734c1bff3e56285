//! Every kind that is served.

use serde_json::Value;

use crate::definition::Kind;
use crate::{
    cloneset, daemonset, images, jobs, persistentpodstate, podunavailablebudget, probes, recreate,
    resourcedistribution, sidecarset, statefulset, uniteddeployment, workloadspread,
};

/// All kinds, by group and name.
pub static ALL: [&Kind; 18] = [
    &jobs::ADVANCED_CRON_JOB,
    &jobs::BROADCAST_JOB,
    &cloneset::crd::KIND,
    &recreate::KIND,
    &daemonset::KIND,
    &jobs::EPHEMERAL_JOB,
    &images::IMAGE_LIST_PULL_JOB,
    &images::IMAGE_PULL_JOB,
    &images::NODE_IMAGE,
    &probes::NODE_POD_PROBE,
    &persistentpodstate::KIND,
    &probes::POD_PROBE_MARKER,
    &resourcedistribution::KIND,
    &sidecarset::KIND,
    &statefulset::KIND,
    &uniteddeployment::KIND,
    &workloadspread::KIND,
    &podunavailablebudget::KIND,
];

/// The kind of this name.
pub fn find(group: &str, kind: &str) -> Option<&'static Kind> {
    ALL.into_iter()
        .find(|known| known.kind == kind && known.group == group)
}

/// The kind that is this resource.
pub fn of_resource(group: &str, plural: &str) -> Option<&'static Kind> {
    ALL.into_iter()
        .find(|known| known.plural == plural && known.group == group)
}

/// The definitions of all kinds. `namespace` is where the conversion webhook's service lives.
pub fn definitions(namespace: &str) -> Vec<Value> {
    ALL.into_iter().map(|kind| kind.manifest(namespace)).collect()
}
