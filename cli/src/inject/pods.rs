//! The pods of objects: a pod is its own, a workload has one in its template.

use anyhow::bail;
use kruise_frame::json::text;
use serde_json::{Map, Value, json};

/// Where templates of pods are, of all kinds that have one.
const TEMPLATES: [&str; 8] = [
    "/spec/template",
    "/spec/jobTemplate/spec/template",
    "/spec/template/jobTemplate/spec/template",
    "/spec/template/broadcastJobTemplate/spec/template",
    "/spec/template/cloneSetTemplate/spec/template",
    "/spec/template/statefulSetTemplate/spec/template",
    "/spec/template/advancedStatefulSetTemplate/spec/template",
    "/spec/template/deploymentTemplate/spec/template",
];

/// The pod that an object is, or makes.
///
/// # Errors
/// If it is or makes none.
pub(super) fn pod_of(object: &Value) -> anyhow::Result<Value> {
    let has_containers = |of: &Value| of.pointer("/spec/containers").is_some_and(Value::is_array);
    let kind = text(object, "/kind");
    if has_containers(object) && matches!(kind, "Pod" | "") {
        return Ok(object.clone());
    }
    let mut templates = TEMPLATES.iter().filter_map(|path| object.pointer(path));
    let Some(template) = templates.find(|template| has_containers(template)) else {
        let kind = if kind.is_empty() {
            "object without a kind"
        } else {
            kind
        };
        let name = text(object, "/metadata/name");
        bail!("the {kind} {name} has no pod; give a Pod, or a workload such as a CloneSet or a Deployment");
    };
    Ok(made(object, template))
}

/// The pod of a template, as its workload creates it.
fn made(workload: &Value, template: &Value) -> Value {
    let metadata = template.get("metadata").and_then(Value::as_object);
    let mut metadata: Map<String, Value> = metadata.cloned().unwrap_or_default();
    let name = text(workload, "/metadata/name");
    metadata.insert("generateName".to_owned(), json!(format!("{name}-")));
    let namespace = text(workload, "/metadata/namespace");
    if !namespace.is_empty() {
        metadata.insert("namespace".to_owned(), json!(namespace));
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec")})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_makes_the_pod_of_its_template() {
        let template =
            json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main"}]}});
        let of = |kind: &str, spec: Value| {
            let object =
                json!({"kind": kind, "metadata": {"name": "web", "namespace": "shop"}, "spec": spec});
            pod_of(&object).map_err(|error| error.to_string())
        };
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": template["spec"],
            "metadata": {"generateName": "web-", "namespace": "shop", "labels": {"app": "web"}}});
        for (kind, spec) in [
            ("Deployment", json!({"template": template})),
            (
                "CronJob",
                json!({"jobTemplate": {"spec": {"template": template}}}),
            ),
            (
                "UnitedDeployment",
                json!({"template": {"cloneSetTemplate": {"spec": {"template": template}}}}),
            ),
        ] {
            assert_eq!(of(kind, spec), Ok(pod.clone()), "{kind}");
        }
        let error = of("Service", json!({"selector": {"app": "web"}})).unwrap_err();
        assert!(error.starts_with("the Service web has no pod"), "{error}");
    }
}
