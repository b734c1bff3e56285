//! Rules about what a CloneSet runs: replicas, selector, template and claims.

use std::collections::BTreeMap;

use go_compat::IntOrString;
use kruise_api::meta::LabelSelector;
use kube_schema::validate::{self, Errors};
use serde::Deserialize as _;
use serde_json::Value;

use crate::Options;
use crate::cloneset::version::{items, member, present, text};

/// `progressDeadlineSeconds` that means never.
const NO_DEADLINE: i64 = i32::MAX as i64;

/// Everything but the strategies.
pub(super) fn check(errors: &mut Errors, spec: &Value, options: Options) {
    not_negative(errors, spec, "replicas", "spec.replicas");
    deadline(errors, spec);
    selector(errors, spec);
    let template = spec.get("template").unwrap_or(&Value::Null);
    let claims = items(spec, "volumeClaimTemplates");
    errors
        .0
        .extend(validate::claims(claims, "spec.volumeClaimTemplates"));
    if template.is_object() {
        errors
            .0
            .extend(validate::pod_template(template, claims, "spec.template"));
        always_running(errors, member(template, "spec").unwrap_or(&Value::Null));
        if !options.allow_privileged {
            unprivileged(errors, template);
        }
    } else {
        errors.required("spec.template", "");
    }
}

/// Refuses a number below zero.
pub(super) fn not_negative(errors: &mut Errors, object: &Value, name: &str, path: impl Into<String>) {
    if let Some(number) = object
        .get(name)
        .and_then(Value::as_i64)
        .filter(|number| *number < 0)
    {
        errors.invalid(path, number, "must be greater than or equal to 0");
    }
}

fn deadline(errors: &mut Errors, spec: &Value) {
    let path = "spec.progressDeadlineSeconds";
    let ready = spec.get("minReadySeconds").and_then(Value::as_i64).unwrap_or(0);
    match spec.get("progressDeadlineSeconds").and_then(Value::as_i64) {
        None | Some(NO_DEADLINE) => {}
        Some(..0) => not_negative(errors, spec, "progressDeadlineSeconds", path),
        Some(seconds) if seconds <= ready => {
            errors.invalid(path, seconds, "must be greater than minReadySeconds");
        }
        Some(_) => {}
    }
}

fn selector(errors: &mut Errors, spec: &Value) {
    let path = "spec.selector";
    let Some(value) = present(spec, "selector") else {
        return errors.required(path, "");
    };
    let found = validate::selector(value, path);
    let Some(selector) = LabelSelector::deserialize(value)
        .ok()
        .filter(|_| found.is_empty())
    else {
        return errors.0.extend(found);
    };
    if selector.is_empty() {
        return errors.invalid(path, value.clone(), "empty selector is invalid for cloneset");
    }
    let labels = spec.pointer("/template/metadata/labels").unwrap_or(&Value::Null);
    // Go reads an explicit null in a map of texts as the empty text.
    let typed: BTreeMap<String, Option<String>> = BTreeMap::deserialize(labels).unwrap_or_default();
    if !selector.matches_by(|key| Some(typed.get(key)?.as_deref().unwrap_or_default())) {
        let detail = "`selector` does not match template `labels`";
        errors.invalid("spec.template.metadata.labels", labels.clone(), detail);
    }
}

/// Pods of a CloneSet run until they are deleted.
fn always_running(errors: &mut Errors, pod: &Value) {
    errors.one_of(
        "spec.template.spec.restartPolicy",
        text(pod, "restartPolicy"),
        &["Always"],
    );
    if present(pod, "activeDeadlineSeconds").is_some() {
        let detail = "activeDeadlineSeconds is not supported by CloneSet";
        errors.forbidden("spec.template.spec.activeDeadlineSeconds", detail);
    }
}

fn unprivileged(errors: &mut Errors, template: &Value) {
    let pod = member(template, "spec").unwrap_or(&Value::Null);
    for list in ["containers", "initContainers"] {
        for (index, container) in items(pod, list).iter().enumerate() {
            if container.pointer("/securityContext/privileged") == Some(&Value::Bool(true)) {
                errors.forbidden(
                    format!("spec.template.spec.{list}[{index}].securityContext.privileged"),
                    "disallowed by cluster policy",
                );
            }
        }
    }
}

/// A count or share that can be read; what cannot is left to decoding.
pub(super) fn int_or_string(object: &Value, name: &str) -> Option<IntOrString> {
    IntOrString::deserialize(present(object, name)?).ok()
}
