//! Kinds in a list, and the kinds of this crate.
//!
//! Which kinds are served follows from registrations, not from [`ALL`]: a kind may be declared in any crate.

use serde_json::Value;

use crate::convert::{ConvertError, convert_as};
use crate::definition::Kind;
use crate::{
    advancedcronjob, broadcastjob, cloneset, containerrecreaterequest, daemonset, ephemeraljob,
    imagelistpulljob, imagepulljob, nodeimage, nodepodprobe, persistentpodstate, podprobemarker,
    podunavailablebudget, resourcedistribution, sidecarset, statefulset, uniteddeployment, workloadspread,
};

/// The kinds of this crate, by group and name.
pub static ALL: [&Kind; 18] = [
    &advancedcronjob::KIND,
    &broadcastjob::KIND,
    &cloneset::KIND,
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
pub fn find(kinds: &[&'static Kind], group: &str, kind: &str) -> Option<&'static Kind> {
    let mut kinds = kinds.iter().copied();
    kinds.find(|known| known.kind == kind && known.group == group)
}

/// Converts an object of one of these kinds to the version `wanted`, such as `apps.kruise.io/v1beta1`. Unchanged if
/// it has that version already.
///
/// # Errors
/// Fails if the kind is unknown, or one of the versions is not served.
pub fn convert(kinds: &[&'static Kind], object: &mut Value, wanted: &str) -> Result<(), ConvertError> {
    let text = |name: &str| {
        object
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (version, name) = (text("apiVersion"), text("kind"));
    let group = version.split_once('/').map_or("", |(group, _)| group);
    match find(kinds, group, &name) {
        Some(kind) => convert_as(kind, object, wanted),
        None => Err(ConvertError::Kind { version, kind: name }),
    }
}

/// The definitions of kinds. `namespace` is where the conversion webhook's service lives.
pub fn definitions(kinds: &[&'static Kind], namespace: &str) -> Vec<Value> {
    kinds.iter().map(|kind| kind.manifest(namespace)).collect()
}
