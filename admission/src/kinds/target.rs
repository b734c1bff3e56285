//! References to workloads: `apiVersion`, `kind` and `name`.

use kube_schema::validate::Errors;
use serde_json::Value;

use crate::json::text;

/// Where every kind has its reference.
pub(super) const PATH: &str = "spec.targetRef";

/// The three texts.
pub(super) fn parts(target: &Value) -> [&str; 3] {
    ["apiVersion", "kind", "name"].map(|name| text(target, name))
}

/// Group and kind; `None` if the version of the API cannot be read.
pub(super) fn group_kind(target: &Value) -> Option<(&str, &str)> {
    let [api_version, kind, _] = parts(target);
    let mut split = api_version.split('/');
    let group = match (split.next(), split.next(), split.next()) {
        (Some(_), None, None) => "",
        (Some(group), Some(_), None) => group,
        _ => return None,
    };
    Some((group, kind))
}

/// Refuses a reference that lacks a part or whose group cannot be told.
pub(super) fn complete(errors: &mut Errors, target: &Value, if_empty: &str) {
    if parts(target).iter().any(|part| part.is_empty()) {
        errors.invalid(PATH, target.clone(), if_empty);
    } else if group_kind(target).is_none() {
        errors.invalid(PATH, target.clone(), "the apiVersion has more than one slash");
    }
}
