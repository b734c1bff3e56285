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
use kube_schema::validate::{self, Errors, FieldError, Kind};
use serde::Deserialize as _;
use serde_json::Value;

use super::{reference, subject};
use crate::{Answer, Operation, Request};

const MOST_IMAGES: usize = 255;
const POLICIES: &[&str] = &["Always", "Never"];

/// Checks a request.
pub fn validate(request: &Request) -> Answer {
    let spec = match subject(request) {
        Ok(spec) => spec,
        Err(answer) => return answer,
    };
    let single = request.kind == "ImagePullJob";
    let mut errors = errors_of(spec, single);
    if request.operation == Operation::Update {
        let old = request.old_object.get("spec").unwrap_or(&Value::Null);
        if !errors.is_empty() {
            errors = validate::new_errors(errors, errors_of(old, single));
        }
        if single && list(spec, "pullSecrets") != list(old, "pullSecrets") {
            errors.push(FieldError {
                path: "spec.pullSecrets".to_owned(),
                kind: Kind::Forbidden,
                value: Value::Null,
                detail: "spec.pullSecrets is immutable".to_owned(),
            });
        }
    }
    if errors.is_empty() {
        return Answer::ALLOW;
    }
    Answer::Deny {
        code: 400,
        message: format!(
            "{}.apps.kruise.io {:?} is invalid: {}",
            request.kind,
            request.name,
            validate::aggregate(&errors)
        ),
    }
}

/// Everything wrong with the specification of an ImageListPullJob, as if it stood at `spec`.
pub(crate) fn list_errors(spec: &Value) -> Vec<FieldError> {
    errors_of(spec, false)
}

/// Everything wrong with a specification.
fn errors_of(spec: &Value, single: bool) -> Vec<FieldError> {
    let mut errors = Errors::default();
    if single {
        image(&mut errors, "spec.image", text(spec, "image"));
    } else {
        images(&mut errors, list(spec, "images"));
    }
    parallelism(&mut errors, spec.get("parallelism"));
    selectors(&mut errors, spec);
    completion(&mut errors, spec, single);
    errors.0
}

fn image(errors: &mut Errors, path: &str, image: &str) {
    if image.is_empty() {
        errors.required(path, "an image is needed");
    } else if !reference::is_valid(image) {
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
    let present = |name: &str| spec.get(name).filter(|value| value.is_object());
    if let Some(selector) = present("selector") {
        let by_label = ["matchLabels", "matchExpressions"].iter().any(|name| {
            let part = selector.get(name);
            part.is_some_and(|part| {
                part.as_object().is_some_and(|m| !m.is_empty())
                    || part.as_array().is_some_and(|a| !a.is_empty())
            })
        });
        let names = list(selector, "names");
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
    if let Some(selector) = present("podSelector") {
        if present("selector").is_some() {
            errors.forbidden("spec.podSelector", "may not stand beside spec.selector");
        }
        errors.0.extend(validate::selector(selector, "spec.podSelector"));
    }
}

fn completion(errors: &mut Errors, spec: &Value, single: bool) {
    const PATH: &str = "spec.completionPolicy";
    let policy = spec.get("completionPolicy").unwrap_or(&Value::Null);
    let kind = text(policy, "type");
    errors.one_of(format!("{PATH}.type"), kind, POLICIES);
    if kind == "Never" {
        for name in ["activeDeadlineSeconds", "ttlSecondsAfterFinished"] {
            if policy.get(name).is_some_and(|value| !value.is_null()) {
                errors.forbidden(format!("{PATH}.{name}"), "may not be set with type Never");
            }
        }
        return;
    }
    let timeout = spec
        .get("pullPolicy")
        .and_then(|policy| policy.get("timeoutSeconds")?.as_i64());
    let deadline = policy.get("activeDeadlineSeconds").and_then(Value::as_i64);
    if let (true, Some(deadline)) = (single, deadline)
        && deadline < timeout.unwrap_or(600)
    {
        let detail = "must not be less than spec.pullPolicy.timeoutSeconds";
        errors.invalid(format!("{PATH}.activeDeadlineSeconds"), deadline, detail);
    }
}

fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    object
        .get(name)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}
