//! The writes of copies.

use std::sync::Arc;

use kruise_api::{
    meta::{ObjectMeta, OwnerReference},
    names::resourcedistribution::{COPY_FROM, COPY_HASH},
};
use kruise_plan_kit::{
    Body, FailureNote, Intent, ObjectWrites, Owner, Part, Patch, Phase, Precondition, Step, Write, put,
};
use kruise_views::MetadataView;
use serde_json::{Map, Value};

use super::reasons;
use super::{contents::Contents, events, snapshot::Snapshot, source::Source, targets};

/// A namespace gets its copy of a Secret or ConfigMap.
pub(super) const CREATE_COPY: Intent = Intent::untold("create-copy").of_copy();
/// A copy gets the contents that it is to have.
pub(super) const UPDATE_COPY: Intent = Intent::untold("update-copy").of_copy();
/// A copy is deleted: its namespace is to have none.
pub(super) const DELETE_COPY: Intent = Intent::untold("delete-copy").of_copy();

/// Makes the writes of the copies of one ResourceDistribution.
pub(super) struct Writer<'a> {
    snapshot: &'a Snapshot<'a>,
    source: Source<'a>,
    owner: Owner<'a>,
    /// What copies are to hold.
    contents: Contents,
    /// What all copies have in common, made for the first that is created.
    body: Option<Arc<Value>>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(snapshot: &'a Snapshot<'a>, source: Source<'a>, owner: Owner<'a>) -> Self {
        Self {
            snapshot,
            source,
            owner,
            contents: Contents::of(source.resource, source.manifest),
            body: None,
        }
    }

    /// Annotations that every copy gets.
    fn annotations(&self) -> [(&'static str, &'a str); 2] {
        let distribution = self.snapshot.distribution;
        [
            (COPY_FROM, &distribution.metadata.name),
            (COPY_HASH, &distribution.resource_hash),
        ]
    }

    fn metadata(&self, member: &str) -> Option<&'a Value> {
        self.source.manifest.get("metadata")?.get(member)
    }

    /// A copy without a namespace.
    fn body(&self) -> Value {
        let mut body = self.source.manifest.clone();
        if let Some(members) = body.as_object_mut() {
            self.contents.clone().fill(members);
        }
        for (key, value) in self.annotations() {
            put(&mut body, &["metadata", "annotations", key], value.into());
        }
        let is_no_controller = |owner: &&Value| owner.get("controller") != Some(&Value::Bool(true));
        let others = self.metadata("ownerReferences").and_then(Value::as_array);
        let others = others.into_iter().flatten().filter(is_no_controller).cloned();
        let owners: Vec<Value> = others.chain([self.owner.reference()]).collect();
        put(&mut body, &["metadata", "ownerReferences"], owners.into());
        body
    }

    /// The creation of the copy of a namespace.
    pub(super) fn create(&mut self, namespace: &str) -> ObjectWrites {
        let base = match &self.body {
            Some(body) => body.clone(),
            None => self.body.insert(Arc::new(self.body())).clone(),
        };
        let write = Write::Create {
            intent: CREATE_COPY,
            target: self.source.target(namespace),
            body: Body {
                base,
                set: vec![("/metadata/namespace", namespace.into())],
            },
            owner_uid: Some(self.owner.uid.to_owned()),
        };
        self.step(
            Phase::Pods,
            "creating",
            write,
            &format!("{namespace} has no copy"),
        )
    }

    /// The update of a copy, which was just read; `None` if it is as it is to be.
    pub(super) fn update(&self, namespace: &str, copy: &Value) -> Option<ObjectWrites> {
        let mut patch = self.contents.changes(&Contents::of(self.source.resource, copy));
        let metadata = self.metadata_changes(copy);
        if patch.is_empty() && metadata.is_empty() {
            return None;
        }
        patch.insert("metadata".to_owned(), self.with_marks(metadata, copy).into());
        let text = |member: &str| {
            let member = copy
                .get("metadata")
                .and_then(|metadata| metadata.get(member)?.as_str());
            member.unwrap_or_default().to_owned()
        };
        let write = Write::Patch {
            intent: UPDATE_COPY,
            target: self.source.target(namespace),
            part: Part::Main,
            patch: Patch::Merge(patch.into()),
            precondition: Precondition::UidAndVersion(text("uid"), text("resourceVersion")),
        };
        let reason = format!("the copy in {namespace} is not what is distributed");
        Some(self.step(Phase::Pods, "updating", write, &reason))
    }

    /// Labels and annotations of the manifest that a copy lacks.
    fn metadata_changes(&self, copy: &Value) -> Map<String, Value> {
        let mut changes = Map::new();
        for member in ["annotations", "labels"] {
            let have = copy.get("metadata").and_then(|metadata| metadata.get(member));
            let wanted = self
                .metadata(member)
                .and_then(Value::as_object)
                .into_iter()
                .flatten();
            let is_ours = |key: &str| member == "annotations" && [COPY_FROM, COPY_HASH].contains(&key);
            let lacks = wanted.filter(|(key, value)| {
                !is_ours(key) && have.and_then(|have| have.get(key.as_str())) != Some(*value)
            });
            let lacks: Map<String, Value> = lacks.map(|(key, value)| (key.clone(), value.clone())).collect();
            if !lacks.is_empty() {
                changes.insert(member.to_owned(), lacks.into());
            }
        }
        changes
    }

    /// The metadata that goes along with other changes: where the copy is from, and finalizers of the manifest.
    fn with_marks(&self, changes: Map<String, Value>, copy: &Value) -> Map<String, Value> {
        let mut metadata = Value::Object(changes);
        for (key, value) in self.annotations() {
            put(&mut metadata, &["annotations", key], value.into());
        }
        let list = |finalizers: Option<&'_ Value>| -> Vec<Value> {
            finalizers.and_then(Value::as_array).cloned().unwrap_or_default()
        };
        let mut finalizers = list(
            copy.get("metadata")
                .and_then(|metadata| metadata.get("finalizers")),
        );
        let missing: Vec<Value> = list(self.metadata("finalizers"))
            .into_iter()
            .filter(|one| !finalizers.contains(one))
            .collect();
        if !missing.is_empty() {
            finalizers.extend(missing);
            put(&mut metadata, &["finalizers"], finalizers.into());
        }
        match metadata {
            Value::Object(members) => members,
            _ => Map::new(),
        }
    }

    /// The deletion of the copy of a namespace that is to have none.
    pub(super) fn delete(&self, namespace: &str, copy: &MetadataView) -> ObjectWrites {
        let write = Write::Delete {
            intent: DELETE_COPY,
            target: self.source.target(namespace),
            precondition: Precondition::UidAndVersion(
                copy.uid.to_string(),
                copy.resource_version.to_string(),
            ),
        };
        let is_reserved = targets::is_reserved(self.snapshot.distribution, namespace);
        let reason = if is_reserved {
            format!("{namespace} is a system namespace, which gets no copy")
        } else {
            format!("{namespace} is to have no copy")
        };
        let mut object = self.step(Phase::Cleanup, "deleting", write, &reason);
        if is_reserved && let Some(step) = object.steps.first_mut() {
            step.done = Some(events::system_copy_removed(&self.source, namespace));
        }
        object
    }

    fn step(&self, phase: Phase, doing: &str, write: Write, reason: &str) -> ObjectWrites {
        let Source { kind, name, .. } = self.source;
        let prefix = format!(
            "Error {doing} {kind} {name} in namespace {}: ",
            write.target().namespace
        );
        let mut step = Step::new(write, reason);
        step.failed = Some(FailureNote::new(&reasons::FAILED_COPY, prefix));
        ObjectWrites::new(phase, vec![step])
    }
}

/// Is an object that was read still the copy that is in the cache, and still controlled by this owner?
pub(super) fn is_still(object: &Value, copy: &MetadataView, owner: &Owner<'_>) -> bool {
    let metadata = object.get("metadata").cloned().unwrap_or_default();
    let Ok(metadata) = serde_json::from_value::<ObjectMeta>(metadata) else {
        return false;
    };
    let controller: Option<&OwnerReference> = metadata.controller();
    metadata.uid == *copy.uid
        && metadata.deletion_timestamp.is_none()
        && controller.is_some_and(|controller| controller.uid == owner.uid)
}
