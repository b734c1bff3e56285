//! What pods are marked by, for parts of the manager that know no kind.

use std::collections::BTreeSet;

use kruise_api::{
    definition::Kind,
    names::{
        sidecarset::{HASH, INPLACE_STATE},
        statefulset::POD_NAME,
    },
    sidecarset::KIND,
};
use kruise_views::PodView;
use serde_json::{Map, Value};

use super::sidecarset::injected;

/// Label of a pod whose name is its place among the pods of its owner.
pub const OWN_NAME: &str = POD_NAME;
/// Kind of the objects that inject sidecars into pods and upgrade them there.
pub const INJECTOR: &Kind = &KIND;

/// Names of the objects of kind [`INJECTOR`] that have injected sidecars into a pod.
pub fn injectors(pod: &PodView) -> impl Iterator<Item = &str> {
    injected(pod)
}

/// Names of the objects of kind [`INJECTOR`] that have upgraded their sidecars between two states of a pod. Each
/// records there what it does.
pub fn upgraded_by(old: &PodView, new: &PodView) -> BTreeSet<String> {
    let records = |pod: &PodView, key| -> Map<String, Value> {
        let text = pod.annotations.get(key).unwrap_or_default();
        // What is no object has no records.
        serde_json::from_str(text).unwrap_or_default()
    };
    let mut changed = BTreeSet::new();
    for key in [HASH, INPLACE_STATE] {
        let (old, new) = (records(old, key), records(new, key));
        let written = new
            .into_iter()
            .filter(|(name, record)| old.get(name) != Some(record));
        changed.extend(written.map(|(name, _)| name));
    }
    changed
}

#[cfg(test)]
mod tests {
    use kruise_api::names::sidecarset::INJECTED_LIST;
    use serde_json::json;

    use super::*;

    fn pod(hash: &str, state: &str) -> PodView {
        let annotations = json!({INJECTED_LIST: "logs,mesh", HASH: hash, INPLACE_STATE: state});
        serde_json::from_value(json!({"metadata": {"name": "web", "annotations": annotations}})).unwrap()
    }

    #[test]
    fn who_has_upgraded_sidecars_is_told_from_the_records() {
        let old = r#"{"logs":{"hash":"1"},"mesh":{"hash":"1"}}"#;
        let by = |new: &PodView| -> Vec<String> { upgraded_by(&pod(old, ""), new).into_iter().collect() };
        assert_eq!(by(&pod(old, "")), [""; 0]);
        assert_eq!(
            by(&pod(r#"{"logs":{"hash":"2"},"mesh":{"hash":"1"}}"#, "")),
            ["logs"]
        );
        assert_eq!(by(&pod(old, r#"{"mesh":{"revision":"2"}}"#)), ["mesh"]);
        assert_eq!(
            by(&pod("{", "")),
            [""; 0],
            "a record that cannot be read names nobody"
        );
        let both = pod(r#"{"logs":{"hash":"2"},"mesh":{"hash":"2"}}"#, "");
        assert_eq!(by(&both), ["logs", "mesh"]);
        assert_eq!(injectors(&both).collect::<Vec<_>>(), ["logs", "mesh"]);
    }
}
