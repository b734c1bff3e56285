//! Every kind that is served.

use serde_json::Value;

use crate::definition::Kind;
use crate::{cloneset, images, sidecarset};

/// All kinds, by name.
pub static ALL: [&Kind; 5] = [
    &cloneset::crd::KIND,
    &images::IMAGE_LIST_PULL_JOB,
    &images::IMAGE_PULL_JOB,
    &images::NODE_IMAGE,
    &sidecarset::KIND,
];

/// The kind of this name.
pub fn find(group: &str, kind: &str) -> Option<&'static Kind> {
    ALL.into_iter()
        .find(|known| known.kind == kind && known.group == group)
}

/// The definitions of all kinds. `namespace` is where the conversion webhook's service lives.
pub fn definitions(namespace: &str) -> Vec<Value> {
    ALL.into_iter().map(|kind| kind.manifest(namespace)).collect()
}
