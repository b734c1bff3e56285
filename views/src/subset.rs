//! The workload of a subset of a UnitedDeployment, whatever its kind.

use jiff::Timestamp;
use kruise_api::meta::{ObjectMeta, StringMap, null_as_default};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::OwnerView;

/// Identity, owners, counts and the specification of a workload.
///
/// The specification is kept as it was read: a plan compares it with the one that it makes, in the version that is
/// served.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SubsetView {
    /// Namespace.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// Version of the stored object.
    pub resource_version: Box<str>,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// The controlling owner.
    pub controller: Option<Box<OwnerView>>,
    /// Being deleted?
    pub deleting: bool,
    /// Labels.
    pub labels: StringMap,
    /// `status.replicas`.
    pub replicas: i32,
    /// `status.readyReplicas`.
    pub ready: i32,
    /// `apiVersion`, `metadata` with labels, annotations and owner references, and `spec`, as stored.
    pub object: Value,
}

kube_cache::cached!(SubsetView; deleting);

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    #[serde(deserialize_with = "null_as_default")]
    replicas: i32,
    #[serde(deserialize_with = "null_as_default")]
    ready_replicas: i32,
}

/// What of the metadata is kept as stored.
const KEPT: [&str; 3] = ["annotations", "labels", "ownerReferences"];

impl<'de> Deserialize<'de> for SubsetView {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut object = Map::<String, Value>::deserialize(deserializer)?;
        // A status of another shape says nothing.
        let status = object.remove("status").unwrap_or_default();
        let status = Status::deserialize(status).unwrap_or_default();
        let metadata = object.get("metadata").cloned().unwrap_or_default();
        let metadata = ObjectMeta::deserialize(metadata).map_err(serde::de::Error::custom)?;
        object.retain(|key, _| ["apiVersion", "kind", "metadata", "spec"].contains(&key.as_str()));
        if let Some(Value::Object(stored)) = object.get_mut("metadata") {
            stored.retain(|key, _| KEPT.contains(&key.as_str()));
        }
        Ok(Self {
            created: metadata.creation_timestamp,
            controller: metadata.controller().map(OwnerView::boxed),
            deleting: metadata.deletion_timestamp.is_some(),
            namespace: metadata.namespace.into(),
            name: metadata.name.into(),
            uid: metadata.uid.into(),
            resource_version: metadata.resource_version.into(),
            labels: metadata.labels,
            replicas: status.replicas,
            ready: status.ready_replicas,
            object: Value::Object(object),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::SubsetView;

    #[test]
    fn the_specification_is_kept_and_what_the_server_manages_is_not() {
        let view: SubsetView = serde_json::from_value(json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "api-a", "namespace": "shop", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"},
                "managedFields": [{}], "generation": 3, "deletionTimestamp": "2026-01-01T00:00:00Z",
                "ownerReferences": [{"apiVersion": "x/v1", "kind": "X", "name": "x", "uid": "o", "controller": true}]},
            "spec": {"replicas": 2, "newer": true}, "status": {"replicas": 2, "readyReplicas": 1},
        }))
        .unwrap();
        assert_eq!((view.replicas, view.ready, view.deleting), (2, 1, true));
        assert_eq!(&*view.controller.unwrap().uid, "o");
        assert_eq!(view.object["spec"], json!({"replicas": 2, "newer": true}));
        assert!(
            view.object["metadata"].get("managedFields").is_none() && view.object.get("status").is_none()
        );
        let bare: SubsetView =
            serde_json::from_value(json!({"metadata": {}, "status": {"replicas": "x"}})).unwrap();
        assert_eq!((bare.replicas, bare.ready), (0, 0));
    }
}
