//! `spec.scaleStrategy.podsToDelete`: distinct names, and only pods of this CloneSet. A name that was accepted once is
//! not checked again: its pod may be gone by now.

use std::collections::BTreeSet;

use kube_schema::validate::{Errors, FieldError, Kind};
use serde_json::Value;

use super::Pod;
use crate::cloneset::version::{items, member};

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
pub(super) fn added<'a>(new: &'a Value, old: Option<&Value>) -> Vec<(usize, &'a str)> {
    let listed = |object: &'a Value| member(object, "spec").into_iter().flat_map(names);
    let known: BTreeSet<&str> = old
        .and_then(|old| member(old, "spec"))
        .into_iter()
        .flat_map(names)
        .map(|(_, name)| name)
        .collect();
    listed(new).filter(|(_, name)| !known.contains(name)).collect()
}

/// Refuses added names of pods that do not exist, are going already, or belong to somebody else.
pub(super) fn ownership(new: &Value, old: Option<&Value>, pods: &[Pod]) -> Vec<FieldError> {
    let uid = new.pointer("/metadata/uid").and_then(Value::as_str);
    let mut errors = Errors::default();
    for (index, name) in added(new, old) {
        let path = format!("{PATH}[{index}]");
        match pods.iter().find(|pod| pod.name == name) {
            None => errors.add(path, Kind::NotFound, name, ""),
            Some(pod) if pod.deleting => errors.invalid(path, name, "the pod is already being deleted"),
            Some(pod) if uid.is_none() || pod.controller.as_deref() != uid => {
                errors.invalid(path, name, "the pod is not controlled by this CloneSet");
            }
            Some(_) => {}
        }
    }
    errors.0
}

fn names(spec: &Value) -> impl Iterator<Item = (usize, &str)> {
    let strategy = member(spec, "scaleStrategy").unwrap_or(&Value::Null);
    items(strategy, "podsToDelete")
        .iter()
        .enumerate()
        .filter_map(|(index, name)| Some((index, name.as_str()?)))
}
