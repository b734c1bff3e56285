//! What an UPDATE must leave alone.

use go_compat::pod_template::canonical_pod_template;
use kruise_api::meta::LabelSelector;
use kube_schema::defaults;
use kube_schema::validate::{Errors, FieldError};
use serde::Deserialize as _;
use serde_json::Value;

use crate::Options;
use crate::cloneset::template_options;
use crate::cloneset::version::{Version, member};

/// Compares the new object with the stored one.
pub(super) fn errors(version: Version, new: &Value, old: &Value, options: Options) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let (Some(new), Some(old)) = (member(new, "spec"), member(old, "spec")) else {
        return errors.0;
    };
    if selector(new) != selector(old) {
        let value = new.get("selector").cloned().unwrap_or_default();
        errors.invalid("spec.selector", value, "field is immutable");
    }
    if version.policy(new) == "InPlaceOnly" && fixed_part(new, old, options) != fixed_part(old, new, options)
    {
        errors.forbidden(
            "spec.template",
            "with InPlaceOnly only metadata and container images may change",
        );
    }
    errors.0
}

/// As it is understood: an empty list is the same as none.
fn selector(spec: &Value) -> Option<LabelSelector> {
    LabelSelector::deserialize(spec.get("selector")?).ok()
}

/// The part of a template that cannot change in place: its spec, without the images of containers that have one in
/// both versions. Defaults are filled in, because an older version may have stored it without.
fn fixed_part(spec: &Value, other: &Value, options: Options) -> Value {
    let mut template = spec.get("template").cloned().unwrap_or_default();
    defaults::pod_template(&mut template, template_options(options));
    let mut template = canonical_pod_template(&template);
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
