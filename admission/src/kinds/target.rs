//! References to workloads: `apiVersion`, `kind` and `name`.

use kruise_api::{definition::Kind, path::segment};
use kruise_plan_kit::workloads::allowed_kinds;
use kube_schema::validate::Errors;
use serde_json::Value;

use super::Scope;
use crate::json::{items, text};
use crate::lookup::{CONFIGURATION, Lookup, Read, Reader};

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

/// Refuses an object whose kind says more about a workload than one may: another one in the namespace refers to the
/// same group, kind and name. On UPDATE nothing is asked, for the reference stays.
pub(super) fn unique(
    errors: &mut Errors,
    kind: &Kind,
    object: &Value,
    scope: &Scope<'_>,
    reader: &mut Reader<'_>,
) {
    let Some(found) = object.pointer("/spec/targetRef").filter(|_| scope.old.is_none()) else {
        return;
    };
    let Some(all) = others(kind, scope, reader) else {
        return;
    };
    let same = |other: &&Value| {
        let other = other.pointer("/spec/targetRef").unwrap_or(&Value::Null);
        group_kind(other) == group_kind(found) && text(other, "name") == text(found, "name")
    };
    if let Some(other) = all.iter().copied().find(same) {
        let detail = format!("{} {} is about the same workload", kind.kind, name_of(other));
        errors.invalid(PATH, found.clone(), &detail);
    }
}

/// The other objects of the kind in the namespace; `None` while they are not known.
pub(super) fn others<'a>(kind: &Kind, scope: &Scope<'_>, reader: &mut Reader<'a>) -> Option<Vec<&'a Value>> {
    let (group, version, namespace) = (kind.group, segment(scope.version), segment(scope.namespace));
    let path = format!("/apis/{group}/{version}/namespaces/{namespace}/{}", kind.plural);
    let list = match reader.object(Lookup::Path(path)) {
        Read::Found(list) => list,
        Read::NotFound => &Value::Null,
        Read::Missing => return None,
    };
    let all = items(list, "items").iter();
    Some(all.filter(|other| name_of(other) != scope.name).collect())
}

/// Name of an object.
pub(super) fn name_of(object: &Value) -> &str {
    object
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Refuses a workload of a kind that only an administrator could have named, in the setting of this name, and did not.
pub(super) fn named_by_administrators(
    errors: &mut Errors,
    found: &Value,
    setting: &'static str,
    reader: &mut Reader<'_>,
) {
    let listed = match reader.setting(setting) {
        Read::Found(listed) => listed,
        Read::NotFound => "",
        Read::Missing => return,
    };
    let (group, kind) = group_kind(found).unwrap_or_default();
    match allowed_kinds(listed) {
        Ok(kinds) if kinds.iter().any(|one| one.group == group && one.kind == kind) => {}
        Ok(_) => {
            let detail = format!("{setting} in {CONFIGURATION} does not list this kind of workload");
            errors.invalid(PATH, found.clone(), &detail);
        }
        Err(why) => {
            let detail = format!("{setting} in {CONFIGURATION} cannot be read: {why}");
            errors.invalid(PATH, found.clone(), &detail);
        }
    }
}

/// Refuses a reference that lacks a part or whose group cannot be read.
pub(super) fn complete(errors: &mut Errors, target: &Value, if_empty: &str) {
    if parts(target).iter().any(|part| part.is_empty()) {
        errors.invalid(PATH, target.clone(), if_empty);
    } else if group_kind(target).is_none() {
        errors.invalid(PATH, target.clone(), "the apiVersion has more than one slash");
    }
}
