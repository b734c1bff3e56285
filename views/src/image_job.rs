//! An `ImagePullJob`: whose it is.

use kruise_api::{
    meta::{ObjectMeta, OwnerReference},
    names,
};
use kube_cache::Cached;
use serde::{Deserialize, Deserializer};

use crate::OwnerView;

/// What a workload decides upon: identity, owner, and the revision whose image it pulls.
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
    /// Hash of the revision that it was made for, if it says so.
    pub revision_hash: Option<Box<str>>,
    /// The controlling owner.
    pub controller: Option<Box<OwnerView>>,
    /// Being deleted? It stays until its own controller has let it go.
    pub deleting: bool,
}

impl Cached for ImageJobView {
    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn uid(&self) -> &str {
        &self.uid
    }

    fn resource_version(&self) -> &str {
        &self.resource_version
    }
}

#[derive(Deserialize)]
struct Wire {
    #[serde(default)]
    metadata: ObjectMeta,
}

impl<'de> Deserialize<'de> for ImageJobView {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let metadata = Wire::deserialize(deserializer)?.metadata;
        let owner = |owner: &OwnerReference| {
            Box::new(OwnerView {
                group: owner.group().into(),
                kind: owner.kind.as_str().into(),
                name: owner.name.as_str().into(),
                uid: owner.uid.as_str().into(),
            })
        };
        Ok(Self {
            controller: metadata.controller().map(owner),
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
