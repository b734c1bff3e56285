//! Jobs: pods that run to their end.
//!
//! Not there: indexed completion, success policies and policies for failures of pods are stored and do nothing.

use kube_schema::validate::{Errors, FieldError};
use serde_json::{Map, Value, json};

use super::{fill, object, pod_template, set};
use crate::object::{get_metadata, metadata_text, set_metadata};

/// Labels that name the job of a pod, in their newer and their older form.
const JOB_LABELS: [(&str, &str); 2] = [
    (
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-name",
    ),
    ("controller-uid", "job-name"),
];

pub(crate) fn default(job: &mut Value) {
    if let Some(spec) = object(job, "spec") {
        let names_either = ["completions", "parallelism"]
            .iter()
            .any(|name| spec.get(*name).is_some_and(|value| !value.is_null()));
        if !names_either {
            fill(spec, "completions", 1);
        }
        fill(spec, "parallelism", 1);
        fill(spec, "backoffLimit", 6);
        fill(spec, "completionMode", "NonIndexed");
        fill(spec, "suspend", false);
        fill(spec, "manualSelector", false);
        fill(spec, "podReplacementPolicy", "TerminatingOrFailed");
        if let Some(template) = spec.get_mut("template") {
            pod_template::default(template);
        }
    }
}

/// A new job selects its pods by its uid, unless it says how, and has the labels of its template, unless it has some.
pub(crate) fn prepare(job: &mut Value) {
    set(job, "status", Map::new());
    let own = job.pointer("/spec/template/metadata/labels").cloned();
    let is_bare = get_metadata(job, "labels").as_object().is_none_or(Map::is_empty);
    if let Some(labels) = own.filter(|labels| is_bare && labels.is_object()) {
        set_metadata(job, "labels", labels);
    }
    if job.pointer("/spec/manualSelector") == Some(&true.into()) {
        return;
    }
    let (uid, name) = (
        metadata_text(job, "uid").to_owned(),
        metadata_text(job, "name").to_owned(),
    );
    let Some(spec) = object(job, "spec") else {
        return;
    };
    set(spec, "selector", json!({"matchLabels": {JOB_LABELS[0].0: uid}}));
    let Some(labels) = object(spec, "template")
        .and_then(|template| object(template, "metadata"))
        .and_then(|metadata| object(metadata, "labels"))
    else {
        return;
    };
    for (of_uid, of_name) in JOB_LABELS {
        set(labels, of_uid, uid.as_str());
        set(labels, of_name, name.as_str());
    }
}

pub(crate) fn validate(job: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let spec = job.get("spec").unwrap_or(&Value::Null);
    for name in [
        "parallelism",
        "completions",
        "backoffLimit",
        "activeDeadlineSeconds",
        "ttlSecondsAfterFinished",
    ] {
        let given = spec.get(name).and_then(Value::as_i64);
        if let Some(number) = given.filter(|number| *number < 0) {
            errors.invalid(
                format!("spec.{name}"),
                number,
                "must be greater than or equal to 0",
            );
        }
    }
    if spec.get("selector").is_none_or(Value::is_null) {
        errors.required("spec.selector", "");
    }
    let template = spec.get("template").unwrap_or(&Value::Null);
    errors.0.extend(kube_schema::validate::pod_template(
        template,
        &[],
        "spec.template",
    ));
    let policy = template.pointer("/spec/restartPolicy").and_then(Value::as_str);
    errors.one_of(
        "spec.template.spec.restartPolicy",
        policy.unwrap_or_default(),
        &["OnFailure", "Never"],
    );
    errors.0
}

pub(crate) fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Errors(validate(new));
    for name in ["completions", "selector", "template", "completionMode"] {
        let value = |job: &Value| job.get("spec").and_then(|spec| spec.get(name)).cloned();
        let after = value(new);
        if value(old) != after {
            errors.invalid(
                format!("spec.{name}"),
                after.unwrap_or_default(),
                "field is immutable",
            );
        }
    }
    errors.0
}
