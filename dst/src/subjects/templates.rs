//! How users edit workloads that have a template and a rolling update.

use crate::rules::prelude::*;

/// A label on a pod that is to be deleted.
pub fn specified_delete() -> Value {
    json!({"metadata": {"labels": {SPECIFIED: "true"}}})
}

/// Another member of `rollingUpdate`.
pub fn rolling(member: &str, value: impl Into<Value>) -> Value {
    json!({"spec": {"updateStrategy": {"rollingUpdate": {member: value.into()}}}})
}

/// Pods are updated when somebody deletes them; with `rollingUpdate`, as at first again.
pub fn on_delete(rolling: Option<Value>) -> Value {
    let kind = if rolling.is_some() {
        "RollingUpdate"
    } else {
        "OnDelete"
    };
    json!({"spec": {"updateStrategy": {"type": kind, "rollingUpdate": rolling}}})
}

/// Another annotation of the template.
pub fn annotation(key: &str, value: Option<u32>) -> Value {
    let value = value.map(|number| number.to_string());
    json!({"spec": {"template": {"metadata": {"annotations": {key: value}}}}})
}

/// Other containers of the template of the only workload of a resource.
pub fn containers(cluster: &Arc<Cluster>, of: Resource, change: impl FnOnce(&mut Value)) -> Value {
    let stored =
        |state: &mut State| Some(state.mirror.only(of)?.spec()["template"]["spec"]["containers"].clone());
    let mut containers = cluster.look(stored).unwrap_or_default();
    change(&mut containers);
    json!({"spec": {"template": {"spec": {"containers": containers}}}})
}

/// Another image of the first container.
pub fn image(cluster: &Arc<Cluster>, of: Resource, number: u32) -> Value {
    containers(cluster, of, |all| {
        all[0]["image"] = format!("web:{number}").into();
    })
}

/// Another value of its variable.
pub fn variable(cluster: &Arc<Cluster>, of: Resource, number: u32) -> Value {
    containers(cluster, of, |all| {
        all[0]["env"][0]["value"] = number.to_string().into();
    })
}
