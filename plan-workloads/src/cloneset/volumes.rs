//! Claims of new pods, and the volumes that name them.

use std::sync::Arc;

use kruise_api::{meta::StringMap, names::INSTANCE_ID};
use kruise_plan_kit::{Body, FailureNote, Intent, Owner, ResourceId, Step, events};
use serde_json::{Map, Value, json};

use super::{claims::Places, create::INSTANCE_ID_POINTER};

/// What of a claim template's metadata the server sets.
const OF_SERVER: [&str; 9] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generateName",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// What a specification says about the claims of new pods.
pub(super) struct Volumes<'a> {
    pub(super) owner: Owner<'a>,
    pub(super) templates: &'a [Value],
    /// Labels of all claims.
    pub(super) labels: &'a StringMap,
}

/// Name of each template and the claim that all of its claims start from.
pub(super) struct Prepared<'a>(Vec<(&'a str, Arc<Value>)>);

impl<'a> Volumes<'a> {
    pub(super) fn prepared(&self) -> Prepared<'a> {
        let templates = self.templates.iter().map(|template| {
            let name = template.pointer("/metadata/name").and_then(Value::as_str);
            (name.unwrap_or_default(), Arc::new(self.claim(template)))
        });
        Prepared(templates.collect())
    }

    /// The claim that all claims of a template start from. Its specification is the template's, whole.
    fn claim(&self, template: &Value) -> Value {
        let mut metadata = match template.get("metadata") {
            Some(Value::Object(metadata)) => metadata.clone(),
            _ => Map::new(),
        };
        metadata.retain(|key, _| !OF_SERVER.contains(&key.as_str()));
        let mut labels = match metadata.remove("labels") {
            Some(Value::Object(labels)) => labels,
            _ => Map::new(),
        };
        for (key, value) in self.labels {
            labels.insert(key.clone(), value.as_str().into());
        }
        labels.insert(INSTANCE_ID.into(), Value::Null);
        metadata.insert("labels".into(), labels.into());
        metadata.insert("namespace".into(), self.owner.namespace.into());
        metadata.insert("ownerReferences".into(), json!([self.owner.reference()]));
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata,
               "spec": template.get("spec").cloned().unwrap_or_else(|| json!({}))})
    }
}

impl Prepared<'_> {
    /// Creations of the claims that the pod of this id does not find.
    pub(super) fn claims(&self, places: &Places<'_>, id: &str) -> Vec<Step> {
        let mut steps = Vec::with_capacity(self.0.len() + 1);
        for (template, base) in &self.0 {
            let name = name_of(template, places.owner.name, id);
            if !places.claims.has(id, &name) {
                steps.push(create(&places.owner, id, name, Arc::clone(base)));
            }
        }
        steps
    }

    /// The volumes of the pod of this id, `None` if they are the template's own: its claims, then what the template has
    /// under other names.
    pub(super) fn of_pod(&self, set: &str, id: &str, template: Option<&Value>) -> Option<Value> {
        if self.0.is_empty() {
            return None;
        }
        let claims = self.0.iter().map(
            |(name, _)| json!({"name": name, "persistentVolumeClaim": {"claimName": name_of(name, set, id)}}),
        );
        let others = template.and_then(Value::as_array).into_iter().flatten();
        let others = others.filter(|volume| {
            let name = volume.get("name").and_then(Value::as_str);
            !self.0.iter().any(|(template, _)| name == Some(*template))
        });
        Some(claims.chain(others.cloned()).collect())
    }
}

fn name_of(template: &str, set: &str, id: &str) -> String {
    format!("{template}-{set}-{id}")
}

fn create(owner: &Owner<'_>, id: &str, name: String, base: Arc<Value>) -> Step {
    let set = vec![
        ("/metadata/name", name.as_str().into()),
        (INSTANCE_ID_POINTER, id.into()),
    ];
    let failed = FailureNote {
        reason: &events::FAILED_CREATE,
        prefix: "failed to create pvc: ".into(),
        suffix: format!(", pvc: {name}"),
    };
    let body = Body { base, set };
    let write = owner.create(Intent::CreateClaim, ResourceId::CLAIMS, name, body);
    Step {
        failed: Some(failed),
        ..Step::new(write, "its pod mounts it")
    }
}
