//! Claims of new pods, and the volumes that name them.

use std::sync::Arc;

use kruise_api::names::INSTANCE_ID;
use kruise_plan_kit::{Body, FailureNote, Intent, ResourceId, Step, Target, Write, events};
use serde_json::{Map, Value, json};

use super::{create::INSTANCE_ID_POINTER, observe::Observed, writes};

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

/// Makes the claims of new pods.
pub(super) struct Volumes<'o, 'a> {
    observed: &'o Observed<'a>,
    /// Name of each template and the claim that all of its claims start from.
    templates: Vec<(&'a str, Arc<Value>)>,
}

impl<'o, 'a> Volumes<'o, 'a> {
    pub(super) fn new(observed: &'o Observed<'a>) -> Self {
        let templates = observed.set.spec.volume_claim_templates.iter();
        let templates = templates.map(|template| {
            let name = template.pointer("/metadata/name").and_then(Value::as_str);
            (name.unwrap_or_default(), Arc::new(claim(observed, template)))
        });
        let templates = templates.collect();
        Self { observed, templates }
    }

    fn name_of(&self, template: &str, id: &str) -> String {
        format!("{template}-{}-{id}", self.observed.set.metadata.name)
    }

    /// Creations of the claims that the pod of this id does not find.
    pub(super) fn claims(&self, id: &str) -> Vec<Step> {
        let mut steps = Vec::with_capacity(self.templates.len());
        for (template, base) in &self.templates {
            let name = self.name_of(template, id);
            if !self.observed.claims.has(id, &name) {
                steps.push(self.create(id, name, Arc::clone(base)));
            }
        }
        steps
    }

    fn create(&self, id: &str, name: String, base: Arc<Value>) -> Step {
        let metadata = &self.observed.set.metadata;
        let set = vec![
            ("/metadata/name", name.as_str().into()),
            (INSTANCE_ID_POINTER, id.into()),
        ];
        let failed = FailureNote {
            reason: &events::FAILED_CREATE,
            prefix: "failed to create pvc: ".into(),
            suffix: format!(", pvc: {name}"),
        };
        let target = Target {
            resource: ResourceId::CLAIMS,
            namespace: metadata.namespace.clone(),
            name,
        };
        let write = Write::Create {
            intent: Intent::CreateClaim,
            target,
            body: Body { base, set },
            owner_uid: metadata.uid.clone(),
        };
        Step {
            write,
            reason: "its pod mounts it".into(),
            done: None,
            failed: Some(failed),
        }
    }

    /// The volumes of the pod of this id, `None` if they are the template's own: its claims, then what the template has
    /// under other names.
    pub(super) fn of_pod(&self, id: &str, template: Option<&Value>) -> Option<Value> {
        if self.templates.is_empty() {
            return None;
        }
        let claims = self.templates.iter().map(
            |(name, _)| json!({"name": name, "persistentVolumeClaim": {"claimName": self.name_of(name, id)}}),
        );
        let others = template.and_then(Value::as_array).into_iter().flatten();
        let others = others.filter(|volume| {
            let name = volume.get("name").and_then(Value::as_str);
            !self.templates.iter().any(|(template, _)| name == Some(*template))
        });
        Some(claims.chain(others.cloned()).collect())
    }
}

/// The claim that all claims of a template start from. Its specification is the template's, whole.
fn claim(observed: &Observed<'_>, template: &Value) -> Value {
    let set = observed.set;
    let mut metadata = match template.get("metadata") {
        Some(Value::Object(metadata)) => metadata.clone(),
        _ => Map::new(),
    };
    metadata.retain(|key, _| !OF_SERVER.contains(&key.as_str()));
    let mut labels = match metadata.remove("labels") {
        Some(Value::Object(labels)) => labels,
        _ => Map::new(),
    };
    for (key, value) in &set.spec.selector.match_labels {
        labels.insert(key.clone(), value.as_str().into());
    }
    labels.insert(INSTANCE_ID.into(), Value::Null);
    metadata.insert("labels".into(), labels.into());
    metadata.insert("namespace".into(), set.metadata.namespace.as_str().into());
    metadata.insert(
        "ownerReferences".into(),
        json!([writes::owner_reference(observed)]),
    );
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata,
           "spec": template.get("spec").cloned().unwrap_or_else(|| json!({}))})
}
