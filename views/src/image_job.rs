//! An `ImagePullJob`: identity and owner.

use kruise_api::{meta::ObjectMeta, names};
use serde::{Deserialize, Deserializer};

use crate::OwnerView;

/// Identity and owner of a job, and the revision whose image it pulls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageJobView {
    /// Namespace.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// Version of the stored object.
    pub resource_version: Box<str>,
    /// Hash of the revision it was created for, from its label.
    pub revision_hash: Option<Box<str>>,
    /// The controlling owner.
    pub controller: Option<Box<OwnerView>>,
    /// Being deleted? It stays until its own controller removes the finalizer.
    pub deleting: bool,
}

kube_cache::cached!(ImageJobView; deleting);

#[derive(Deserialize)]
struct Wire {
    #[serde(default)]
    metadata: ObjectMeta,
}

impl<'de> Deserialize<'de> for ImageJobView {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let metadata = Wire::deserialize(deserializer)?.metadata;
        Ok(Self {
            controller: metadata.controller().map(OwnerView::boxed),
            revision_hash: metadata
                .labels
                .get(names::CONTROLLER_HASH)
                .map(|hash| hash.as_str().into()),
            deleting: metadata.deletion_timestamp.is_some(),
            namespace: metadata.namespace.into(),
            name: metadata.name.into(),
            uid: metadata.uid.into(),
            resource_version: metadata.resource_version.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::ImageJobView;

    #[test]
    fn every_field_a_planner_reads_is_decoded() {
        let job: ImageJobView = serde_json::from_str(
            r#"{"metadata":{"name":"web-x-main","namespace":"n","uid":"u","resourceVersion":"7",
                "labels":{"controller.kubernetes.io/hash":"x"},"deletionTimestamp":"2026-01-01T00:00:01Z",
                "ownerReferences":[
                {"apiVersion":"apps.kruise.io/v1alpha1","kind":"CloneSet","name":"web","uid":"ou","controller":true}]},
                "spec":{"image":"web:2"},"status":{"desired":1}}"#,
        )
        .unwrap();
        let owner = job.controller.as_ref().map(|owner| (&*owner.name, &*owner.uid));
        assert_eq!(owner, Some(("web", "ou")));
        assert_eq!((job.revision_hash.as_deref(), job.deleting), (Some("x"), true));
    }
}
