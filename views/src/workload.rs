//! A workload, whatever its kind: who owns it, how many pods it wants, how they are numbered, and which template
//! they have.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use go_compat::IntOrString;
use jiff::Timestamp;
use kruise_api::{
    meta::{LabelSelector, ObjectMeta, StringMap, null_as_default},
    names::persistentpodstate::WORKLOAD_ANNOTATIONS,
};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::{Labels, OwnerView};

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
    /// Does its deletion leave what it owns behind? The garbage collector then takes its references away first.
    pub orphaning: bool,
    /// `spec.replicas`; `None` if it is absent or no number.
    pub replicas: Option<i32>,
    /// `spec.selector`; `None` if it is absent or no label selector.
    pub selector: Option<Box<LabelSelector>>,
    /// How its pods are numbered, if not from zero on without a gap.
    pub numbering: Option<Box<Numbering>>,
    /// Its annotations that say whether a PersistentPodState is generated for it, and which.
    pub annotations: Labels,
    /// Was only its scale read? Then nothing is known of its controller and annotations.
    pub scale_only: bool,
    /// Its label `pod-template-hash`, which ReplicaSets have; empty if it has none.
    pub template_hash: Box<str>,
    /// A print of `spec.template` without that label, by which a Deployment finds its newest ReplicaSet; `None` if
    /// it has no template, or was not read whole.
    pub template: Option<u64>,
    /// The numbers of the object at their places, and nothing else of it. Only of workloads that no cache has.
    pub numbers: Option<Arc<Value>>,
}

/// How the pods of a workload are numbered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbering {
    /// `spec.ordinals.start`: the number of the first pod.
    pub start: i32,
    /// `spec.reserveOrdinals`: numbers, and ranges such as `3-5`, that no pod has.
    pub reserved: Vec<IntOrString>,
}

impl Numbering {
    /// From `start` on, without the reserved numbers; `None` if that is from zero on without a gap.
    pub fn new(start: i32, reserved: Vec<IntOrString>) -> Option<Box<Self>> {
        (start != 0 || !reserved.is_empty()).then(|| Box::new(Self { start, reserved }))
    }
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
#[serde(rename_all = "camelCase", default)]
struct Spec {
    replicas: Value,
    /// What a Job has in place of replicas.
    parallelism: Value,
    selector: Value,
    template: Value,
    ordinals: Value,
    reserve_ordinals: Value,
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
            orphaning: metadata.finalizers.iter().any(|one| one == ORPHAN),
            replicas,
            selector: selector.map(Box::new),
            numbering: None,
            annotations: relevant(&metadata.annotations),
            scale_only: false,
            template_hash: metadata
                .labels
                .get(TEMPLATE_HASH)
                .map_or("", String::as_str)
                .into(),
            template: None,
            numbers: None,
        }
    }

    /// Is it being deleted, so that its pods go with it?
    pub fn is_ending(&self) -> bool {
        self.deleting && !self.orphaning
    }

    /// The same, with pods that are numbered so.
    #[must_use]
    pub fn numbered(self, numbering: Option<Box<Numbering>>) -> Self {
        Self { numbering, ..self }
    }
}

/// Finalizer of an object whose deletion leaves what it owns behind.
const ORPHAN: &str = "orphan";

/// Label that tells the pods of a Deployment apart by their templates.
pub const TEMPLATE_HASH: &str = "pod-template-hash";

/// Equal for templates that differ in the label of their hash at most.
fn print(mut template: Value) -> Option<u64> {
    if !template.is_object() {
        return None;
    }
    let labels = template.pointer_mut("/metadata/labels");
    if let Some(labels) = labels.and_then(Value::as_object_mut) {
        labels.remove(TEMPLATE_HASH);
    }
    let mut hasher = DefaultHasher::new();
    template.hash(&mut hasher);
    Some(hasher.finish())
}

/// The numbers of an object at their places, without its metadata; lists keep their length.
pub fn numbers_of(object: &Value) -> Value {
    match object {
        Value::Object(members) => {
            let members = members.iter().filter(|(name, _)| *name != "metadata");
            let numbers = members.map(|(name, value)| (name.clone(), numbers_of(value)));
            numbers.filter(|(_, value)| !value.is_null()).collect()
        }
        Value::Array(items) => items.iter().map(numbers_of).collect(),
        Value::Number(_) => object.clone(),
        _ => Value::Null,
    }
}

/// Of these annotations, those that are kept.
fn relevant(annotations: &StringMap) -> Labels {
    let kept = WORKLOAD_ANNOTATIONS.iter().filter_map(|key| {
        let value = annotations.get(*key)?;
        Some((*key, value.as_str()))
    });
    kept.collect()
}

impl<'de> Deserialize<'de> for WorkloadView {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Wire { metadata, spec } = Wire::deserialize(deserializer)?;
        // Any kind may have members of these names: what they are not, they do not say.
        let replicas = spec.replicas.as_i64().or_else(|| spec.parallelism.as_i64());
        let replicas = replicas.and_then(|replicas| replicas.try_into().ok());
        let selector = Some(spec.selector).filter(Value::is_object);
        let selector = selector.and_then(|selector| LabelSelector::deserialize(selector).ok());
        let start = spec.ordinals.get("start").and_then(Value::as_i64);
        let start = start.and_then(|start| start.try_into().ok()).unwrap_or(0);
        let reserved = Vec::deserialize(spec.reserve_ordinals).unwrap_or_default();
        let numbering = Numbering::new(start, reserved);
        Ok(Self {
            template: print(spec.template),
            ..Self::new(&metadata, replicas, selector).numbered(numbering)
        })
    }
}

#[cfg(test)]
mod tests {
    use go_compat::IntOrString;
    use serde_json::{Value, json};

    use super::{Numbering, WorkloadView};

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
        assert!(found.deleting && found.is_ending());
        let controller = found.controller.unwrap();
        assert_eq!(
            (&*controller.group, &*controller.kind, &*controller.uid),
            ("apps", "Deployment", "d")
        );
        assert_eq!(found.replicas, Some(3));
        assert_eq!(found.selector.unwrap().match_labels["app"], "web");
    }

    #[test]
    fn a_deletion_that_orphans_ends_no_pods() {
        let of = |finalizer: &str| {
            view(
                json!({"metadata": {"name": "web", "deletionTimestamp": "2026-01-01T00:00:00Z",
                                     "finalizers": ["example.com/x", finalizer]}}),
            )
        };
        assert!(of("foregroundDeletion").is_ending());
        let orphaning = of("orphan");
        assert!(orphaning.deleting && !orphaning.is_ending());
    }

    #[test]
    fn templates_are_compared_without_the_label_of_their_hash() {
        let of = |template: Value| {
            let metadata = json!({"name": "web", "labels": {"pod-template-hash": "5f"}});
            view(json!({"metadata": metadata, "spec": {"template": template}}))
        };
        let template = |labels: Value, image: &str| {
            of(json!({"metadata": {"labels": labels}, "spec": {"containers": [{"image": image}]}}))
        };
        let own = template(json!({"app": "web"}), "a");
        let labelled = template(json!({"app": "web", "pod-template-hash": "5f"}), "a");
        assert!(own.template.is_some() && own.template == labelled.template);
        assert_ne!(own.template, template(json!({"app": "web"}), "b").template);
        assert_eq!(of(json!(null)).template, None);
        assert_eq!(&*labelled.template_hash, "5f");
    }

    #[test]
    fn a_job_says_how_many_pods_it_wants_as_parallelism() {
        let job = json!({"metadata": {"name": "sum"}, "spec": {"parallelism": 4, "completions": 9}});
        assert_eq!(view(job).replicas, Some(4));
    }

    #[test]
    fn numbers_keep_their_places() {
        let object = json!({"metadata": {"generation": 3}, "kind": "Game",
            "spec": {"groups": [{"name": "a"}, {"name": "b", "size": 2}], "names": ["x"]}});
        let numbers = json!({"spec": {"groups": [{}, {"size": 2}], "names": [null]}});
        assert_eq!(super::numbers_of(&object), numbers);
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

    #[test]
    fn the_numbers_of_pods_and_the_annotations_of_pod_states_are_read() {
        let object = json!({"metadata": {"name": "web", "annotations": {"other": "x",
                "kruise.io/auto-generate-persistent-pod-state": "true"}},
            "spec": {"replicas": 1, "ordinals": {"start": 2}, "reserveOrdinals": [3, "5-6"]}});
        let found = view(object);
        let reserved = vec![IntOrString::Int(3), IntOrString::String("5-6".into())];
        assert_eq!(found.numbering, Numbering::new(2, reserved));
        let annotations: Vec<_> = found.annotations.iter().collect();
        assert_eq!(
            annotations,
            [("kruise.io/auto-generate-persistent-pod-state", "true")]
        );
        let plain =
            view(json!({"metadata": {"name": "web"}, "spec": {"ordinals": null, "reserveOrdinals": "odd"}}));
        assert_eq!(plain.numbering, None);
        assert!(plain.annotations.is_empty());
    }
}
