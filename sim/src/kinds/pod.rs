//! Pods.

use std::borrow::Cow;

use kube_schema::validate::{Errors, FieldError};
use serde_json::{Value, json};

use super::{each, fill, items, keep, object, pod_template, remove, set};
use crate::object::at;

pub(crate) fn default(pod: &mut Value) {
    pod_template::default(pod);
    if let Some(spec) = pod.get_mut("spec") {
        fill(spec, "enableServiceLinks", true);
        pod_template::requests_from_limits(spec);
        if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
            for list in ["containers", "initContainers"] {
                for port in each(spec, list).flat_map(|one| each(one, "ports")) {
                    let number = port.get("containerPort").cloned().unwrap_or_default();
                    fill(port, "hostPort", number);
                }
            }
        }
    }
}

pub(crate) fn prepare_create(pod: &mut Value) {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let mut status = json!({"phase": "Pending", "qosClass": pod_template::quality(spec)});
    if items(spec, "schedulingGates").next().is_some() {
        let condition = json!({"type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastProbeTime": null, "lastTransitionTime": null});
        set(&mut status, "conditions", json!([condition]));
    }
    set(pod, "status", status);
    admit(pod);
}

/// Admission: priority, and how long a pod stays on a node that is lost. It runs on updates too.
fn admit(pod: &mut Value) {
    if let Some(spec) = pod.get_mut("spec") {
        fill(spec, "priority", 0);
        fill(spec, "preemptionPolicy", "PreemptLowerPriority");
        tolerate(spec, "node.kubernetes.io/not-ready");
        tolerate(spec, "node.kubernetes.io/unreachable");
    }
}

fn tolerate(spec: &mut Value, taint: &str) {
    let tolerated = items(spec, "tolerations").any(|one| {
        let key = one.get("key").and_then(Value::as_str).unwrap_or_default();
        let effect = one.get("effect").and_then(Value::as_str).unwrap_or_default();
        (key == taint || key.is_empty()) && (effect == "NoExecute" || effect.is_empty())
    });
    if tolerated {
        return;
    }
    fill(spec, "tolerations", json!([]));
    if let Some(tolerations) = spec.get_mut("tolerations").and_then(Value::as_array_mut) {
        tolerations.push(
            json!({"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}),
        );
    }
}

pub(crate) fn prepare_update(new: &mut Value, old: &Value) {
    keep(new, old, "status");
    if let (Some(spec), Some(priority)) = (new.get_mut("spec"), at(old, "/spec/priority")) {
        fill(spec, "priority", priority.clone());
    }
    admit(new);
}

/// The class of service is settled when the pod is made.
pub(crate) fn prepare_status(new: &mut Value, old: &Value) {
    if let (Some(status), Some(class)) = (object(new, "status"), at(old, "/status/qosClass")) {
        fill(status, "qosClass", class.clone());
    }
}

pub(crate) fn validate(pod: &Value) -> Vec<FieldError> {
    kube_schema::validate::pod_template(&without_ephemeral(pod), &[], "")
        .into_iter()
        .map(|mut error| {
            error.path = error.path.trim_start_matches('.').to_owned();
            error
        })
        // metadata is checked for all kinds alike
        .filter(|error| !error.path.starts_with("labels") && !error.path.starts_with("annotations"))
        .collect()
}

fn without_ephemeral(pod: &Value) -> Cow<'_, Value> {
    if at(pod, "/spec/ephemeralContainers").is_none() {
        return Cow::Borrowed(pod);
    }
    let mut pod = pod.clone();
    if let Some(spec) = pod.get_mut("spec") {
        remove(spec, "ephemeralContainers");
    }
    Cow::Owned(pod)
}

const MUTABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
                       `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions \
                       to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it \
                       was previously negative)";

pub(crate) fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Errors(validate(new));
    let (Some(new), Some(old)) = (new.get("spec"), old.get("spec")) else {
        return errors.0;
    };
    for list in ["containers", "initContainers"] {
        if items(new, list).count() != items(old, list).count() {
            errors.forbidden(
                format!("spec.{list}"),
                "pod updates may not add or remove containers",
            );
            return errors.0;
        }
    }
    if added_tolerations(new, old).is_none() {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        errors.forbidden("spec.tolerations", why);
    }
    if new != old && frozen(new) != frozen(old) {
        errors.forbidden("spec", MUTABLE);
    }
    errors.0
}

/// The new tolerations, if every old one is still there.
fn added_tolerations<'a>(new: &'a Value, old: &Value) -> Option<Vec<&'a Value>> {
    let bare = |one: &Value| {
        let mut one = one.clone();
        remove(&mut one, "tolerationSeconds");
        one
    };
    let new: Vec<&Value> = items(new, "tolerations").collect();
    items(old, "tolerations")
        .all(|one| new.iter().any(|kept| bare(kept) == bare(one)))
        .then_some(new)
}

/// The spec without what may change.
fn frozen(spec: &Value) -> Value {
    let mut spec = spec.clone();
    for name in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        remove(&mut spec, name);
    }
    for list in ["containers", "initContainers"] {
        each(&mut spec, list).for_each(|container| remove(container, "image"));
    }
    spec
}
