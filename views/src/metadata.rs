//! An object of which only the metadata is read, whatever its kind. A server that can leave out the rest sends
//! nothing else.

use kruise_api::meta::OwnerReference;
use serde::{Deserialize, Deserializer};

use crate::OwnerView;

/// Identity, version and controller of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetadataView {
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// Version of the stored object.
    pub resource_version: Box<str>,
    /// The controlling owner.
    pub controller: Option<Box<OwnerView>>,
    /// Being deleted?
    pub deleting: bool,
}

kube_cache::cached!(MetadataView; deleting);

#[derive(Default, Deserialize)]
#[serde(default)]
struct Wire {
    metadata: Meta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Meta {
    namespace: Box<str>,
    name: Box<str>,
    uid: Box<str>,
    resource_version: Box<str>,
    owner_references: Option<Vec<OwnerReference>>,
    deletion_timestamp: Option<Box<str>>,
}

impl<'de> Deserialize<'de> for MetadataView {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Wire { metadata } = Wire::deserialize(deserializer)?;
        let mut owners = metadata.owner_references.iter().flatten();
        Ok(Self {
            controller: owners.find(|owner| owner.controller).map(OwnerView::boxed),
            deleting: metadata.deletion_timestamp.is_some(),
            namespace: metadata.namespace,
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::MetadataView;

    #[test]
    fn whole_objects_and_their_metadata_alone_are_read_alike() {
        let metadata = json!({
            "namespace": "shop", "name": "reg", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"},
            "ownerReferences": [{"kind": "Job", "uid": "j"},
                {"apiVersion": "apps.kruise.io/v1beta1", "kind": "ResourceDistribution", "name": "d", "uid": "d1",
                    "controller": true}],
        });
        let read = |object: serde_json::Value| -> MetadataView {
            serde_json::from_str(&object.to_string()).unwrap()
        };
        let alone = read(json!({"kind": "PartialObjectMetadata", "metadata": metadata}));
        let whole = read(json!({"kind": "Secret", "metadata": metadata, "data": {"token": "dG9rZW4="}}));
        assert_eq!(alone, whole);
        let owner = alone.controller.unwrap();
        assert_eq!(
            (&*owner.kind, &*owner.uid, &*owner.group),
            ("ResourceDistribution", "d1", "apps.kruise.io")
        );
        let bare = read(
            json!({"metadata": {"name": "x", "ownerReferences": null, "deletionTimestamp": "2026-01-01T00:00:00Z"}}),
        );
        assert!(bare.controller.is_none() && bare.deleting && !alone.deleting);
    }
}
