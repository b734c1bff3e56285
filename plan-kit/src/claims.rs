//! Claims that a workload makes from its templates, and the volumes of pods that name them.

use std::sync::Arc;

use kruise_api::meta::StringMap;
use serde_json::{Map, Value, json};

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

/// Claim templates: the name of each, and the claim that all of its claims start from.
pub struct ClaimTemplates<'a>(Vec<ClaimTemplate<'a>>);

/// One claim template.
pub struct ClaimTemplate<'a> {
    /// Its name: that of the volume.
    pub name: &'a str,
    /// The claim that all of its claims start from. Their names are missing.
    pub base: Arc<Value>,
}

impl<'a> ClaimTemplates<'a> {
    /// The claims get the labels of their template and `labels`, which win, and these owners. The specification is the
    /// template's, whole.
    pub fn new(templates: &'a [Value], namespace: &str, labels: &StringMap, owners: &[Value]) -> Self {
        let templates = templates.iter().map(|template| ClaimTemplate {
            name: name_of(template),
            base: Arc::new(claim(template, namespace, labels, owners)),
        });
        Self(templates.collect())
    }

    /// The templates in their order.
    pub fn iter(&self) -> impl Iterator<Item = &ClaimTemplate<'a>> {
        self.0.iter()
    }

    /// The volumes of the pod of this id, `None` if they are the template's own: its claims, then what the pod
    /// template has under other names.
    pub fn volumes(&self, owner: &str, id: &str, pod_template: Option<&Value>) -> Option<Value> {
        if self.0.is_empty() {
            return None;
        }
        let claims = self.0.iter().map(|template| {
            let claim = template.claim_of(owner, id);
            json!({"name": template.name, "persistentVolumeClaim": {"claimName": claim}})
        });
        let others = pod_template.and_then(Value::as_array).into_iter().flatten();
        let others = others.filter(|volume| {
            let name = volume.get("name").and_then(Value::as_str);
            !self.0.iter().any(|template| name == Some(template.name))
        });
        Some(claims.chain(others.cloned()).collect())
    }
}

impl ClaimTemplate<'_> {
    /// Name of the claim of the pod `<owner>-<id>`.
    pub fn claim_of(&self, owner: &str, id: &str) -> String {
        format!("{}-{owner}-{id}", self.name)
    }
}

/// Name of a claim template.
pub fn name_of(template: &Value) -> &str {
    let name = template.pointer("/metadata/name").and_then(Value::as_str);
    name.unwrap_or_default()
}

fn claim(template: &Value, namespace: &str, labels: &StringMap, owners: &[Value]) -> Value {
    let mut metadata = match template.get("metadata") {
        Some(Value::Object(metadata)) => metadata.clone(),
        _ => Map::new(),
    };
    metadata.retain(|key, _| !OF_SERVER.contains(&key.as_str()));
    let mut all = match metadata.remove("labels") {
        Some(Value::Object(labels)) => labels,
        _ => Map::new(),
    };
    all.extend(
        labels
            .iter()
            .map(|(key, value)| (key.clone(), value.as_str().into())),
    );
    metadata.insert("labels".into(), all.into());
    metadata.insert("namespace".into(), namespace.into());
    if !owners.is_empty() {
        metadata.insert("ownerReferences".into(), owners.into());
    }
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata,
           "spec": template.get("spec").cloned().unwrap_or_else(|| json!({}))})
}
