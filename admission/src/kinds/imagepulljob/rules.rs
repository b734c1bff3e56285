//! What an ImagePullJob or ImageListPullJob must satisfy.
//!
//! | Field | Rule | Kind |
//! |---|---|---|
//! | `image` | there, and the name of an image | job |
//! | `images` | 1 to 255 names of images, each once | list |
//! | `parallelism` | a number, not negative, no percentage | both |
//! | `selector` | distinct `names` or labels, not both; well formed | both |
//! | `podSelector` | well formed; not beside `selector` | both |
//! | `completionPolicy` | `Always` or `Never`; `Never` has neither deadline nor time to live | both |
//! | `completionPolicy.activeDeadlineSeconds` | not less than the time for one pull | job |
//! | `pullSecrets` | stay as they are on UPDATE | job |
//!
//! On UPDATE a rule that the stored object breaks in the same way is not held against the new one.

use std::collections::BTreeSet;

use go_compat::IntOrString;
use go_compat::image::Reference;
use kube_schema::validate::{self, Errors, FieldError, Kind};
use serde::Deserialize as _;
use serde_json::Value;

use super::Scope;
use crate::json::{items, member, present, text};

/// How long a pull may take where nothing is said.
pub(super) const TIMEOUT_SECONDS: i64 = 600;
const MOST_IMAGES: usize = 255;
const POLICIES: &[&str] = &["Always", "Never"];

/// What is wrong with a job of one image.
pub(super) fn job(errors: &mut Errors, object: &Value, _: &Scope<'_>) {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    image(errors, "spec.image", text(spec, "image"));
    common(errors, spec);
    let policy = spec.get("completionPolicy").unwrap_or(&Value::Null);
    let timeout = spec.pointer("/pullPolicy/timeoutSeconds").and_then(Value::as_i64);
    let deadline = policy.get("activeDeadlineSeconds").and_then(Value::as_i64);
    if let Some(deadline) = deadline.filter(|_| text(policy, "type") != "Never")
        && deadline < timeout.unwrap_or(TIMEOUT_SECONDS)
    {
        let detail = "must not be less than spec.pullPolicy.timeoutSeconds";
        errors.invalid("spec.completionPolicy.activeDeadlineSeconds", deadline, detail);
    }
}

/// What is wrong with a job of several.
pub(in crate::kinds) fn list(errors: &mut Errors, object: &Value, _: &Scope<'_>) {
    errors
        .0
        .extend(list_errors(object.get("spec").unwrap_or(&Value::Null)));
}

/// Everything wrong with the specification of an ImageListPullJob, as if it stood at `spec`.
pub(crate) fn list_errors(spec: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    images(&mut errors, items(spec, "images"));
    common(&mut errors, spec);
    errors.0
}

/// The secrets of a job stay.
pub(super) fn job_changes(errors: &mut Errors, new: &Value, old: &Value, _: &Scope<'_>) {
    let secrets = |object: &Value| {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        items(spec, "pullSecrets").to_vec()
    };
    if secrets(new) != secrets(old) {
        errors.forbidden("spec.pullSecrets", "spec.pullSecrets is immutable");
    }
}

fn common(errors: &mut Errors, spec: &Value) {
    parallelism(errors, spec.get("parallelism"));
    selectors(errors, spec);
    completion(errors, spec);
}

fn image(errors: &mut Errors, path: &str, image: &str) {
    if image.is_empty() {
        errors.required(path, "an image is needed");
    } else if image.parse::<Reference>().is_err() {
        errors.invalid(path, image, "is no name of an image");
    }
}

fn images(errors: &mut Errors, images: &[Value]) {
    if images.is_empty() {
        errors.required("spec.images", "an image is needed");
    }
    if images.len() > MOST_IMAGES {
        errors.add("spec.images", Kind::TooMany(MOST_IMAGES as u64), images.len(), "");
    }
    let mut seen = BTreeSet::new();
    for (index, item) in images.iter().enumerate() {
        let path = format!("spec.images[{index}]");
        let name = item.as_str().unwrap_or_default();
        if seen.insert(name) {
            image(errors, &path, name);
        } else {
            errors.add(path, Kind::Duplicate, name, "");
        }
    }
}

fn parallelism(errors: &mut Errors, value: Option<&Value>) {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return;
    };
    let number = match IntOrString::deserialize(value) {
        Ok(IntOrString::Int(number)) => Some(i64::from(number)),
        Ok(IntOrString::String(text)) => text.parse::<i64>().ok(),
        Err(_) => None,
    };
    if !number.is_some_and(|number| (0..=i64::from(i32::MAX)).contains(&number)) {
        let detail = "must be a number, not negative; a percentage is not supported";
        errors.invalid("spec.parallelism", value.clone(), detail);
    }
}

fn selectors(errors: &mut Errors, spec: &Value) {
    if let Some(selector) = member(spec, "selector") {
        let by_label = ["matchLabels", "matchExpressions"].iter().any(|name| {
            let part = selector.get(name);
            part.is_some_and(|part| {
                part.as_object().is_some_and(|m| !m.is_empty())
                    || part.as_array().is_some_and(|a| !a.is_empty())
            })
        });
        let names = items(selector, "names");
        if by_label && !names.is_empty() {
            errors.forbidden("spec.selector.names", "may not stand beside labels");
        }
        let mut seen = BTreeSet::new();
        for (index, name) in names.iter().enumerate() {
            if !seen.insert(name.as_str()) {
                errors.add(
                    format!("spec.selector.names[{index}]"),
                    Kind::Duplicate,
                    name.clone(),
                    "",
                );
            }
        }
        if by_label {
            errors.0.extend(validate::selector(selector, "spec.selector"));
        }
    }
    if let Some(selector) = member(spec, "podSelector") {
        if member(spec, "selector").is_some() {
            errors.forbidden("spec.podSelector", "may not stand beside spec.selector");
        }
        errors.0.extend(validate::selector(selector, "spec.podSelector"));
    }
}

fn completion(errors: &mut Errors, spec: &Value) {
    const PATH: &str = "spec.completionPolicy";
    let policy = spec.get("completionPolicy").unwrap_or(&Value::Null);
    let kind = text(policy, "type");
    errors.one_of(format!("{PATH}.type"), kind, POLICIES);
    if kind == "Never" {
        for name in ["activeDeadlineSeconds", "ttlSecondsAfterFinished"] {
            if present(policy, name).is_some() {
                errors.forbidden(format!("{PATH}.{name}"), "may not be set with type Never");
            }
        }
    }
}
