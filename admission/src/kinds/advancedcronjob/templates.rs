//! The three templates, one of which a schedule has.

use go_compat::pod_template::canonical_pod_template;
use kube_schema::validate::Errors;
use serde_json::{Map, Value};

use crate::json::{fill, made, member, present, text};
use crate::kinds::imagepulljob::rules;
use crate::kinds::{Scope, broadcastjob};
use crate::{Options, workload};

/// The template of pulls of images.
pub(super) const IMAGES: &str = "imageListPullJobTemplate";
/// Templates that hold one of pods.
const WITH_PODS: [&str; 2] = ["jobTemplate", "broadcastJobTemplate"];
/// Where those are.
pub(super) const OF_PODS: [&str; 2] = [
    "spec.template.jobTemplate.spec.template",
    "spec.template.broadcastJobTemplate.spec.template",
];
/// A job has a dash and ten digits more.
const LONGEST_NAME: usize = 52;
const LONGEST_PULL: i64 = 24 * 60 * 60;

/// Fills in pod templates if any part of the template is new, and what pulls need if they do not say when they end.
pub(super) fn complete(object: &mut Value, scope: &Scope<'_>) {
    let meaning_of = |object: &Value| object.pointer("/spec/template").map(meaning);
    let is_new = scope.old.is_none_or(|old| meaning_of(old) != meaning_of(object));
    let Some(template) = object.pointer_mut("/spec/template") else {
        return;
    };
    if is_new && scope.options.template_defaults {
        for name in WITH_PODS {
            if let Some(pods) = template.pointer_mut(&format!("/{name}/spec/template")) {
                workload::complete(pods, scope.options);
            }
        }
    }
    let spec = template.pointer_mut(&format!("/{IMAGES}/spec"));
    if let Some(spec) = spec.filter(|spec| spec.is_object()) {
        pulls(spec);
    }
}

fn pulls(spec: &mut Value) {
    let Some(policy) = made(spec, "completionPolicy") else {
        return;
    };
    if !text(policy, "type").is_empty() {
        return;
    }
    fill(policy, "type", "Always");
    if let Some(policy) = made(spec, "pullPolicy") {
        fill(policy, "timeoutSeconds", 600);
        fill(policy, "backoffLimit", 3);
    }
    fill(spec, "imagePullPolicy", "IfNotPresent");
}

/// One template, and what becomes of it.
pub(super) fn check(errors: &mut Errors, template: &Value, options: Options) {
    let path = "spec.template";
    let [job, broadcast] = WITH_PODS;
    let given: Vec<&str> = [job, broadcast, IMAGES]
        .into_iter()
        .filter(|name| member(template, name).is_some())
        .collect();
    match given.as_slice() {
        [] => errors.forbidden(path, "a template is needed"),
        [_] => {}
        _ => errors.forbidden(path, "may not specify more than 1 template"),
    }
    for name in given {
        let spec = template.pointer(&format!("/{name}/spec")).unwrap_or(&Value::Null);
        let path = format!("{path}.{name}.spec");
        if name == IMAGES {
            images_of(errors, spec, &path);
        } else {
            let pods = spec.get("template").unwrap_or(&Value::Null);
            workload::template(errors, pods, &[], &format!("{path}.template"), options);
        }
    }
}

/// A list of images that could be pulled, in a job that ends by itself and is kept for the history.
fn images_of(errors: &mut Errors, spec: &Value, path: &str) {
    for mut error in rules::list_errors(spec) {
        error.path = error.path.replacen("spec", path, 1);
        errors.0.push(error);
    }
    let policy = spec.get("completionPolicy").unwrap_or(&Value::Null);
    let at = |name: &str| format!("{path}.completionPolicy.{name}");
    errors.one_of(at("type"), text(policy, "type"), &["Always"]);
    if let Some(seconds) = present(policy, "ttlSecondsAfterFinished") {
        let detail = "must not be set: the limits of history say what is kept";
        errors.invalid(at("ttlSecondsAfterFinished"), seconds.clone(), detail);
    }
    let timeout = spec.pointer("/pullPolicy/timeoutSeconds").and_then(Value::as_i64);
    let deadline = policy.get("activeDeadlineSeconds").and_then(Value::as_i64);
    match deadline {
        Some(seconds) if seconds > LONGEST_PULL => {
            errors.invalid(
                at("activeDeadlineSeconds"),
                seconds,
                "must not be longer than a day",
            );
        }
        Some(seconds) if seconds < timeout.unwrap_or(600) => {
            let detail = "must not be less than pullPolicy.timeoutSeconds";
            errors.invalid(at("activeDeadlineSeconds"), seconds, detail);
        }
        _ => {}
    }
}

/// What no job can be created with, although OpenKruise accepts it.
pub(super) fn advice(object: &Value, scope: &Scope<'_>) -> Vec<String> {
    let mut texts = Vec::new();
    let name = object.pointer("/metadata/name").and_then(Value::as_str);
    if name.is_some_and(|name| name.len() > LONGEST_NAME) {
        texts.push(format!(
            "metadata.name: jobs are named after it and the time, and no such name has more than 63 characters: with more \
             than {LONGEST_NAME} here no job can be created"
        ));
    }
    let template = object.pointer("/spec/template").unwrap_or(&Value::Null);
    let [job, broadcast] = WITH_PODS;
    let at = |name: &str| {
        template
            .pointer(&format!("/{name}/spec"))
            .filter(|spec| spec.is_object())
    };
    if let Some(spec) = at(broadcast) {
        let errors = broadcastjob::refused(spec, scope).into_iter();
        texts.extend(errors.map(|mut error| {
            let path = format!("spec.template.{broadcast}.spec");
            error.path = error.path.replacen("spec", &path, 1);
            format!("{error}: no job can be created")
        }));
    }
    if let Some(spec) = at(job) {
        let policy = spec
            .pointer("/template/spec/restartPolicy")
            .and_then(Value::as_str);
        if !["Never", "OnFailure"].contains(&policy.unwrap_or_default()) {
            texts.push(format!(
                "spec.template.{job}.spec.template.spec.restartPolicy: pods of a Job restart never or on failure: no job \
                 can be created"
            ));
        }
    }
    texts
}

/// Templates of pods stay; one of pulls may change if there was one.
pub(super) fn changes(errors: &mut Errors, new: &Value, old: &Value, scope: &Scope<'_>) {
    let fixed = |object: &Value| {
        let mut template = object.pointer("/spec/template").cloned().unwrap_or_default();
        for name in WITH_PODS {
            // stored before a default was there, or without: they mean the same
            if let Some(pods) = template.pointer_mut(&format!("/{name}/spec/template")) {
                workload::complete(pods, scope.options);
            }
        }
        let had_images = old.pointer(&format!("/spec/template/{IMAGES}"));
        if had_images.is_some_and(Value::is_object)
            && let Some(members) = template.as_object_mut()
        {
            members.remove(IMAGES);
        }
        meaning(&template)
    };
    if fixed(new) != fixed(old) {
        errors.forbidden(
            "spec.template",
            "templates of Jobs and BroadcastJobs are immutable",
        );
    }
}

/// What a template says, however it is written: pods as Go reads them, the rest without empty members.
fn meaning(template: &Value) -> Value {
    let mut template = template.clone();
    for name in WITH_PODS {
        if let Some(pods) = template.pointer_mut(&format!("/{name}/spec/template")) {
            *pods = canonical_pod_template(pods);
        }
    }
    without_empty(&template)
}

fn without_empty(value: &Value) -> Value {
    let Value::Object(members) = value else {
        return value.clone();
    };
    let is_empty = |value: &Value| value.is_null() || value.as_object().is_some_and(Map::is_empty);
    let members = members
        .iter()
        .map(|(name, value)| (name.clone(), without_empty(value)));
    Value::Object(members.filter(|(_, value)| !is_empty(value)).collect())
}
