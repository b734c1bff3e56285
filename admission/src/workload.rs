//! What kinds that make pods have in common: their template, their selector, and what may change in place.

use std::collections::BTreeMap;

use go_compat::pod_template::canonical_pod_template;
use kruise_api::meta::LabelSelector;
use kruise_plan_kit::inplace::{self, NotInPlace, VerticalScaling};
use kube_schema::defaults;
use kube_schema::validate::{self, Errors};
use serde::Deserialize as _;
use serde_json::Value;

use crate::Options;
use crate::json::{items, member, present, text};

/// Where a workload has its template.
pub(crate) const TEMPLATE: &str = "/spec/template";

/// Fills in the defaults of a pod template.
pub(crate) fn complete(template: &mut Value, options: Options) {
    defaults::pod_template(template, template_options(options));
}

/// Gates as the defaulting of templates knows them.
fn template_options(options: Options) -> defaults::Options {
    defaults::Options {
        host_ports: if options.host_ports {
            defaults::HostPorts::Copy
        } else {
            defaults::HostPorts::Leave
        },
    }
}

/// Are the templates at a JSON pointer different? Compared as a Go client reads them: an explicit zero value is the
/// same as none.
pub(crate) fn template_differs(object: &Value, other: &Value, pointer: &str) -> bool {
    let template = |object: &Value| {
        let template = object.pointer(pointer);
        template.map(canonical_pod_template).unwrap_or_default()
    };
    template(object) != template(other)
}

/// Refuses a number below zero.
pub(crate) fn not_negative(errors: &mut Errors, object: &Value, name: &str, path: impl Into<String>) {
    if let Some(number) = object
        .get(name)
        .and_then(Value::as_i64)
        .filter(|number| *number < 0)
    {
        errors.invalid(path, number, "must be greater than or equal to 0");
    }
}

/// Refuses a negative grace period of in-place updates. `path` is that of the strategy.
pub(crate) fn grace_period(errors: &mut Errors, strategy: &Value, path: &str) {
    if let Some(in_place) = member(strategy, "inPlaceUpdateStrategy") {
        let path = format!("{path}.inPlaceUpdateStrategy.gracePeriodSeconds");
        not_negative(errors, in_place, "gracePeriodSeconds", path);
    }
}

/// A selector that is there, well formed, not empty, and matches the template. `kind` is how messages name the kind.
pub(crate) fn selector(errors: &mut Errors, spec: &Value, kind: &str) {
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
        let detail = format!("empty selector is invalid for {}", kind.to_lowercase());
        return errors.invalid(path, value.clone(), &detail);
    }
    let labels = spec.pointer("/template/metadata/labels").unwrap_or(&Value::Null);
    // Go reads an explicit null in a map of texts as the empty text.
    let typed: BTreeMap<String, Option<String>> = BTreeMap::deserialize(labels).unwrap_or_default();
    if !selector.matches_by(|key| Some(typed.get(key)?.as_deref().unwrap_or_default())) {
        let detail = "`selector` does not match template `labels`";
        errors.invalid("spec.template.metadata.labels", labels.clone(), detail);
    }
}

/// A pod template that could become a pod. `claims` are volumes, too.
pub(crate) fn template(
    errors: &mut Errors,
    template: &Value,
    claims: &[Value],
    path: &str,
    options: Options,
) {
    if !template.is_object() {
        return errors.required(path, "");
    }
    errors.0.extend(validate::pod_template(template, claims, path));
    if !options.allow_privileged {
        unprivileged(errors, template, path);
    }
}

fn unprivileged(errors: &mut Errors, template: &Value, path: &str) {
    let pod = member(template, "spec").unwrap_or(&Value::Null);
    for list in ["containers", "initContainers"] {
        for (index, container) in items(pod, list).iter().enumerate() {
            if container.pointer("/securityContext/privileged") == Some(&Value::Bool(true)) {
                errors.forbidden(
                    format!("{path}.spec.{list}[{index}].securityContext.privileged"),
                    "disallowed by cluster policy",
                );
            }
        }
    }
}

/// Pods of the template at `spec.template` run until they are deleted.
pub(crate) fn always_running(errors: &mut Errors, spec: &Value, kind: &str) {
    let pod = spec.pointer("/template/spec").unwrap_or(&Value::Null);
    errors.one_of(
        "spec.template.spec.restartPolicy",
        text(pod, "restartPolicy"),
        &["Always"],
    );
    if present(pod, "activeDeadlineSeconds").is_some() {
        let detail = format!("activeDeadlineSeconds is not supported by {kind}");
        errors.forbidden("spec.template.spec.activeDeadlineSeconds", &detail);
    }
}

/// Refuses another selector than the stored one. An empty list is the same as none.
pub(crate) fn same_selector(errors: &mut Errors, new: &Value, old: &Value) {
    let read = |spec: &Value| LabelSelector::deserialize(spec.get("selector")?).ok();
    if read(new) != read(old) {
        let value = new.get("selector").cloned().unwrap_or_default();
        errors.invalid("spec.selector", value, "field is immutable");
    }
}

/// With `InPlaceOnly`, refuses a template whose pods would have to be made anew. `resizes`: amounts of CPU and
/// memory may change, as far as the pods' class of service stays.
pub(crate) fn changes_in_place(
    errors: &mut Errors,
    new: &Value,
    old: &Value,
    options: Options,
    resizes: bool,
) {
    if fixed_part(new, old, options) == fixed_part(old, new, options) {
        return;
    }
    if !resizes {
        let detail = "with InPlaceOnly only metadata and container images may change";
        return errors.forbidden("spec.template", detail);
    }
    // What the server lowers without a restart depends on its version: the update says so if it cannot be made.
    let change = inplace::diff(
        &whole(old, options),
        &whole(new, options),
        VerticalScaling::Endpoint,
    );
    if let Err(NotInPlace { path }) = change {
        let detail = format!(
            "with InPlaceOnly only metadata, container images, CPU and memory may change, not {path}"
        );
        errors.forbidden("spec.template", &detail);
    }
}

/// A template as it means, defaults filled in, because an older version may have stored it without.
fn whole(spec: &Value, options: Options) -> Value {
    let mut template = spec.get("template").cloned().unwrap_or_default();
    complete(&mut template, options);
    canonical_pod_template(&template)
}

/// The part of a template that cannot change in place: its spec, without the images of containers that have one in
/// both versions.
fn fixed_part(spec: &Value, other: &Value, options: Options) -> Value {
    let mut template = whole(spec, options);
    let others = other
        .pointer("/template/spec/containers")
        .and_then(Value::as_array);
    let containers = template
        .pointer_mut("/spec/containers")
        .and_then(Value::as_array_mut);
    for (container, other) in containers.into_iter().flatten().zip(others.into_iter().flatten()) {
        if let (Some(image), Some(true)) = (
            container.get_mut("image"),
            other.get("image").map(Value::is_string),
        ) {
            image.take();
        }
    }
    template.get_mut("spec").map(Value::take).unwrap_or_default()
}

/// Metadata whose name is also part of names and labels of what is made: letters, digits and dashes, at most 63.
pub(crate) fn plain_metadata(errors: &mut Errors, object: &Value) {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    let name = text(metadata, "name");
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if name.len() > 63 || !is_plain {
        let detail = "must be at most 63 letters, digits and dashes";
        errors.invalid("metadata.name", name, detail);
    }
    errors.0.extend(validate::metadata(metadata, "metadata"));
}
