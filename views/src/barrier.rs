//! The barrier of a pod: the ConfigMap whose keys allow its containers to start.

use std::collections::BTreeMap;

use kruise_api::meta::ObjectMeta;
use serde::{Deserialize, Deserializer};

/// Owner and keys of a barrier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BarrierView {
    /// Namespace.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// Version of the stored object.
    pub resource_version: Box<str>,
    /// Name and uid of each pod that owns it.
    pub pods: Box<[(Box<str>, Box<str>)]>,
    /// Keys of its data, sorted.
    pub keys: Box<[Box<str>]>,
}

impl BarrierView {
    /// Is it owned by the pod with this uid?
    pub fn is_of(&self, pod: &str) -> bool {
        self.pods.iter().any(|(_, uid)| &**uid == pod)
    }

    /// Does it have this key, so that the containers that wait for it may start?
    pub fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|have| &**have == key)
    }
}

kube_cache::cached!(BarrierView);

#[derive(Deserialize)]
struct Wire {
    #[serde(default)]
    metadata: ObjectMeta,
    data: Option<BTreeMap<Box<str>, Box<str>>>,
}

impl<'de> Deserialize<'de> for BarrierView {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Wire { metadata, data } = Wire::deserialize(deserializer)?;
        let owners = metadata.owner_references.iter();
        let pods = owners.filter(|owner| owner.api_version == "v1" && owner.kind == "Pod");
        Ok(Self {
            pods: pods
                .map(|owner| (owner.name.as_str().into(), owner.uid.as_str().into()))
                .collect(),
            keys: data.unwrap_or_default().into_keys().collect(),
            namespace: metadata.namespace.into(),
            name: metadata.name.into(),
            uid: metadata.uid.into(),
            resource_version: metadata.resource_version.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::BarrierView;

    #[test]
    fn owners_and_keys_are_read() {
        let barrier: BarrierView = serde_json::from_str(
            r#"{"metadata":{"name":"web-barrier","namespace":"n","uid":"u","resourceVersion":"7","ownerReferences":[
                {"apiVersion":"apps/v1","kind":"Other","name":"web","uid":"x"},
                {"apiVersion":"v1","kind":"Pod","name":"web","uid":"p"}]},"data":{"p_10":"true","p_-1":"true"}}"#,
        )
        .unwrap();
        assert!(barrier.is_of("p") && !barrier.is_of("x"));
        assert!(barrier.has("p_10") && barrier.has("p_-1") && !barrier.has("p_1"));
        assert_eq!((&*barrier.name, &*barrier.resource_version), ("web-barrier", "7"));
    }

    #[test]
    fn a_barrier_without_data_or_owner_has_no_keys_and_no_pod() {
        for text in [
            r#"{"metadata":{}}"#,
            r#"{"metadata":{"ownerReferences":null},"data":null}"#,
        ] {
            let barrier: BarrierView = serde_json::from_str(text).unwrap();
            assert_eq!(barrier, BarrierView::default());
        }
    }
}
