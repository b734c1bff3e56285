//! Every kind that is served.

use serde_json::Value;

use crate::definition::Kind;
use crate::{
    advancedcronjob, broadcastjob, cloneset, containerrecreaterequest, daemonset, ephemeraljob,
    imagelistpulljob, imagepulljob, nodeimage, nodepodprobe, persistentpodstate, podprobemarker,
    podunavailablebudget, resourcedistribution, sidecarset, statefulset, uniteddeployment, workloadspread,
};

/// All kinds, by group and name.
pub static ALL: [&Kind; 18] = [
    &advancedcronjob::KIND,
    &broadcastjob::KIND,
    &cloneset::crd::KIND,
    &containerrecreaterequest::KIND,
    &daemonset::KIND,
    &ephemeraljob::KIND,
    &imagelistpulljob::KIND,
    &imagepulljob::KIND,
    &nodeimage::KIND,
    &nodepodprobe::KIND,
    &persistentpodstate::KIND,
    &podprobemarker::KIND,
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
