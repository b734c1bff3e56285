//! `spec.scaleStrategy.podsToDelete`: distinct names, and only pods of this CloneSet. A name that was accepted once is
//! not checked again: its pod may be gone by now.

use std::collections::BTreeSet;

use kube_schema::validate::{self, Errors, Kind};
use serde_json::Value;

use crate::json::{items, member};
use crate::kinds::Scope;
use crate::lookup::{Read, Reader};

const PATH: &str = "spec.scaleStrategy.podsToDelete";

/// Refuses names that occur twice.
pub(super) fn distinct(errors: &mut Errors, spec: &Value) {
    let mut seen = BTreeSet::new();
    for (index, name) in names(spec) {
        if !seen.insert(name) {
            errors.add(format!("{PATH}[{index}]"), Kind::Duplicate, name, "");
        }
    }
}

/// The names that the stored object does not have, with their indexes.
fn added<'a>(new: &'a Value, old: Option<&Value>) -> Vec<(usize, &'a str)> {
    let listed = |object: &'a Value| member(object, "spec").into_iter().flat_map(names);
    let known: BTreeSet<&str> = old
        .and_then(|old| member(old, "spec"))
        .into_iter()
        .flat_map(names)
        .map(|(_, name)| name)
        .collect();
    listed(new).filter(|(_, name)| !known.contains(name)).collect()
}

/// Refuses added names of pods that do not exist, are being deleted already, or belong to another owner.
pub(in crate::kinds::cloneset) fn check(
    errors: &mut Errors,
    object: &Value,
    scope: &Scope<'_>,
    reader: &mut Reader<'_>,
) {
    let uid = object.pointer("/metadata/uid").and_then(Value::as_str);
    for (index, name) in added(object, scope.old) {
        let path = format!("{PATH}[{index}]");
        // what could be no name is not looked up
        let pod = if validate::is_dns_subdomain(name) {
            reader.pod(scope.namespace, name)
        } else {
            Read::NotFound
        };
        match pod {
            Read::NotFound => errors.add(path, Kind::NotFound, name, ""),
            Read::Found(pod) if pod.deleting => {
                errors.invalid(path, name, "the pod is already being deleted");
            }
            Read::Found(pod) if uid.is_none() || pod.controller.as_deref() != uid => {
                errors.invalid(path, name, "the pod is not controlled by this CloneSet");
            }
            Read::Found(_) | Read::Missing => {}
        }
    }
}

fn names(spec: &Value) -> impl Iterator<Item = (usize, &str)> {
    let strategy = member(spec, "scaleStrategy").unwrap_or(&Value::Null);
    items(strategy, "podsToDelete")
        .iter()
        .enumerate()
        .filter_map(|(index, name)| Some((index, name.as_str()?)))
}
