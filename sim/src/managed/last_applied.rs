//! From `kubectl apply` to `kubectl apply --server-side`: what an annotation says was applied is no conflict for
//! kubectl.

use kube_schema::apply::{FieldSet, compare, fields};
use serde_json::Value;

use super::owners::Conflict;
use super::write::Write;
use crate::object::{get_metadata, set_metadata};
use crate::validation::text;

/// The manager that is kubectl's.
pub(super) const KUBECTL: &str = "kubectl";
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn annotation(object: &Value) -> &str {
    text(get_metadata(object, "annotations"), ANNOTATION)
}

/// Conflicts about fields that the annotation does not have as they are.
pub(super) fn left(write: &Write<'_>, live: &Value, version: &str, conflicts: &[Conflict]) -> Vec<Conflict> {
    let allowed = allowed(write, live, version).paths();
    let left = conflicts
        .iter()
        .filter(|conflict| !allowed.contains(&conflict.path));
    left.cloned().collect()
}

fn allowed(write: &Write<'_>, live: &Value, version: &str) -> FieldSet {
    let applied: Option<Value> = serde_json::from_str(annotation(live)).ok();
    let Some(applied) = applied.filter(|applied| text(applied, "apiVersion") == version) else {
        return FieldSet::default();
    };
    let found = compare(write.shape, Some(&applied), Some(live));
    let all = fields(write.shape, &applied);
    all.difference(&found.modified)
        .difference(&found.added)
        .difference(&found.removed)
}

/// Keeps the annotation, where there is one, in step with what kubectl applies by the server.
pub(super) fn renew(object: &mut Value, applied: &Value) {
    if annotation(object).is_empty() {
        return;
    }
    let mut applied = applied.clone();
    let mut annotations = get_metadata(&applied, "annotations").clone();
    if let Value::Object(members) = &mut annotations {
        members.remove(ANNOTATION);
        set_metadata(&mut applied, "annotations", annotations);
    }
    let mut annotations = get_metadata(object, "annotations").clone();
    if let Value::Object(members) = &mut annotations {
        members.insert(ANNOTATION.to_owned(), format!("{applied}\n").into());
        set_metadata(object, "annotations", annotations);
    }
}
