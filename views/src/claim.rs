//! A persistent volume claim: identity, owners, and what it asks for and has.

use kruise_api::{meta::ObjectMeta, names};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::{OwnerView, amount};

/// Identity and owners of a claim, the pod it was created for, and its size.
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
    /// Owners that do not control it: the claim is deleted when the last of its owners is.
    pub owners: Box<[OwnerView]>,
    /// Name of the StatefulSet that resizes it, if one does.
    pub follows: Option<Box<str>>,
    /// Access modes, in order.
    pub access_modes: Box<[Box<str>]>,
    /// Storage class by name; none if the cluster's default was meant and nobody has filled it in.
    pub class: Option<Box<str>>,
    /// Storage that it asks for, in thousandths of a byte.
    pub requested: Option<i64>,
    /// Storage that it has, in thousandths of a byte; none until it is bound.
    pub capacity: Option<i64>,
    /// Has its volume grown, and its file system grows when a pod mounts it next?
    pub resize_pending: bool,
    /// Being deleted? It stays for as long as a pod uses it.
    pub deleting: bool,
}

kube_cache::cached!(ClaimView; deleting);

#[derive(Default, Deserialize)]
#[serde(default)]
struct Wire {
    metadata: ObjectMeta,
    spec: Option<Spec>,
    status: Option<Status>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    access_modes: Option<Box<[Box<str>]>>,
    storage_class_name: Option<Box<str>>,
    resources: Option<Resources>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Resources {
    requests: Option<Amounts>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Amounts {
    storage: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    capacity: Option<Amounts>,
    conditions: Option<Vec<Condition>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type")]
    kind: Box<str>,
    status: Box<str>,
}

impl<'de> Deserialize<'de> for ClaimView {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Wire {
            metadata,
            spec,
            status,
        } = Wire::deserialize(deserializer)?;
        let (spec, status) = (spec.unwrap_or_default(), status.unwrap_or_default());
        let storage = |amounts: Option<Amounts>| amounts.and_then(|amounts| amount(&amounts.storage));
        let others = metadata.owner_references.iter().filter(|owner| !owner.controller);
        let pending = |condition: &Condition| {
            &*condition.kind == "FileSystemResizePending" && &*condition.status == "True"
        };
        Ok(Self {
            controller: metadata.controller().map(OwnerView::boxed),
            owners: others.map(OwnerView::of).collect(),
            instance: metadata
                .labels
                .get(names::INSTANCE_ID)
                .map(|id| id.as_str().into()),
            follows: metadata
                .annotations
                .get(names::statefulset::CLAIM_OWNER)
                .map(|set| set.as_str().into()),
            access_modes: spec.access_modes.unwrap_or_default(),
            class: spec.storage_class_name,
            requested: storage(spec.resources.and_then(|resources| resources.requests)),
            capacity: storage(status.capacity),
            resize_pending: status.conditions.unwrap_or_default().iter().any(pending),
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
        let others: Vec<&str> = claim.owners.iter().map(|owner| &*owner.uid).collect();
        assert_eq!(others, ["pu"]);
    }

    #[test]
    fn what_a_claim_asks_for_and_has_is_read() {
        let claim: ClaimView = serde_json::from_str(
            r#"{"metadata":{"name":"a","annotations":{"apps.kruise.io/owned-by-asts":"web"}},
                "spec":{"accessModes":["ReadWriteOnce"],"storageClassName":"fast","resources":{"requests":{"storage":"2Gi"}}},
                "status":{"capacity":{"storage":"1Gi"},
                          "conditions":[{"type":"FileSystemResizePending","status":"True"}]}}"#,
        )
        .unwrap();
        let gib = 1000 * (1_i64 << 30);
        assert_eq!((claim.requested, claim.capacity), (Some(2 * gib), Some(gib)));
        assert_eq!(
            (claim.follows.as_deref(), claim.class.as_deref()),
            (Some("web"), Some("fast"))
        );
        assert_eq!(
            claim.access_modes.iter().map(|mode| &**mode).collect::<Vec<_>>(),
            ["ReadWriteOnce"]
        );
        assert!(claim.resize_pending);
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
