//! A workload, whatever its kind: who owns it, and how many pods it wants.

use jiff::Timestamp;
use kruise_api::meta::{LabelSelector, ObjectMeta, null_as_default};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::OwnerView;

/// Identity, controller and scale of a workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkloadView {
    /// Namespace.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// Version of the stored object.
    pub resource_version: Box<str>,
    /// The controlling owner.
    pub controller: Option<Box<OwnerView>>,
    /// Being deleted?
    pub deleting: bool,
    /// `spec.replicas`; `None` if it is absent or no number.
    pub replicas: Option<i32>,
    /// `spec.selector`; `None` if it is absent or no label selector.
    pub selector: Option<Box<LabelSelector>>,
}

kube_cache::cached!(WorkloadView; deleting);

#[derive(Default, Deserialize)]
#[serde(default)]
struct Wire {
    metadata: ObjectMeta,
    #[serde(deserialize_with = "null_as_default")]
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    replicas: Value,
    selector: Value,
}

impl WorkloadView {
    /// The members of an object whose specification has these replicas and this selector.
    pub fn new(metadata: &ObjectMeta, replicas: Option<i32>, selector: Option<LabelSelector>) -> Self {
        Self {
            namespace: metadata.namespace.as_str().into(),
            name: metadata.name.as_str().into(),
            uid: metadata.uid.as_str().into(),
            created: metadata.creation_timestamp,
            resource_version: metadata.resource_version.as_str().into(),
            controller: metadata.controller().map(OwnerView::boxed),
            deleting: metadata.deletion_timestamp.is_some(),
            replicas,
            selector: selector.map(Box::new),
        }
    }
}

impl<'de> Deserialize<'de> for WorkloadView {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Wire { metadata, spec } = Wire::deserialize(deserializer)?;
        // Any kind may have members of these names: what they are not, they do not say.
        let replicas = spec
            .replicas
            .as_i64()
            .and_then(|replicas| replicas.try_into().ok());
        let selector = Some(spec.selector).filter(Value::is_object);
        let selector = selector.and_then(|selector| LabelSelector::deserialize(selector).ok());
        Ok(Self::new(&metadata, replicas, selector))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::WorkloadView;

    fn view(object: Value) -> WorkloadView {
        serde_json::from_str(&object.to_string()).unwrap()
    }

    #[test]
    fn the_scale_and_the_controller_of_any_kind_are_read() {
        let found = view(json!({
            "metadata": {"namespace": "shop", "name": "web-5f", "uid": "u", "resourceVersion": "7",
                         "deletionTimestamp": "2026-01-01T00:00:00Z",
                         "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web",
                                              "uid": "d", "controller": true}]},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}},
        }));
        let controller = found.controller.unwrap();
        assert_eq!(
            (&*controller.group, &*controller.kind, &*controller.uid),
            ("apps", "Deployment", "d")
        );
        assert!(found.deleting);
        assert_eq!(found.replicas, Some(3));
        assert_eq!(found.selector.unwrap().match_labels["app"], "web");
    }

    #[test]
    fn members_that_mean_something_else_say_nothing() {
        for spec in [
            json!(null),
            json!({}),
            json!({"replicas": "three", "selector": "app=web"}),
            json!({"replicas": 3_000_000_000_u64, "selector": {"matchLabels": 1}}),
        ] {
            let object = json!({"metadata": {"name": "web"}, "spec": spec});
            let found = view(object);
            assert_eq!((found.replicas, found.selector), (None, None), "{spec}");
        }
    }
}
