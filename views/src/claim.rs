//! A persistent volume claim: identity and owner.

use kruise_api::{meta::ObjectMeta, names};
use serde::{Deserialize, Deserializer};

use crate::OwnerView;

/// Identity and owner of a claim, and the pod it was created for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimView {
    /// Namespace.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// Version of the stored object.
    pub resource_version: Box<str>,
    /// The instance id it shares with its pod, if it has one.
    pub instance: Option<Box<str>>,
    /// The controlling owner.
    pub controller: Option<Box<OwnerView>>,
    /// Being deleted? It stays for as long as a pod uses it.
    pub deleting: bool,
}

kube_cache::cached!(ClaimView; deleting);

#[derive(Deserialize)]
struct Wire {
    #[serde(default)]
    metadata: ObjectMeta,
}

impl<'de> Deserialize<'de> for ClaimView {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let metadata = Wire::deserialize(deserializer)?.metadata;
        Ok(Self {
            controller: metadata.controller().map(OwnerView::boxed),
            instance: metadata
                .labels
                .get(names::INSTANCE_ID)
                .map(|id| id.as_str().into()),
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
    use super::ClaimView;

    #[test]
    fn every_field_a_planner_reads_is_decoded() {
        let claim: ClaimView = serde_json::from_str(
            r#"{"metadata":{"name":"data-web-a","namespace":"n","uid":"u","resourceVersion":"7",
                "labels":{"apps.kruise.io/cloneset-instance-id":"a"},"deletionTimestamp":"2026-01-01T00:00:01Z",
                "ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"pu"},
                {"apiVersion":"apps.kruise.io/v1alpha1","kind":"CloneSet","name":"web","uid":"ou","controller":true}]},
                "spec":{"volumeName":"v"},"status":{"phase":"Bound"}}"#,
        )
        .unwrap();
        assert_eq!(
            claim
                .controller
                .as_ref()
                .map(|owner| (&*owner.group, &*owner.kind, &*owner.name, &*owner.uid)),
            Some(("apps.kruise.io", "CloneSet", "web", "ou"))
        );
        assert_eq!((claim.instance.as_deref(), claim.deleting), (Some("a"), true));
    }

    #[test]
    fn a_claim_with_null_everywhere_has_no_owner() {
        let claim: ClaimView =
            serde_json::from_str(r#"{"metadata":{"name":"a","labels":null,"ownerReferences":null}}"#)
                .unwrap();
        assert_eq!(
            (claim.controller, claim.instance, claim.deleting),
            (None, None, false)
        );
    }
}
