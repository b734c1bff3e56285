//! What `ephemeralcontainers` may change of a pod: containers come, and none of them changes or goes.
//!
//! Containers that are there stay in their order, before those that come; a server lets a client reorder them.

use std::collections::BTreeSet;

use kube_schema::validate::{self, Errors, FieldError, Kind};
use serde_json::Value;

use super::{items, pod, remove, set};
use crate::object::{get_metadata, set_metadata};

/// What only the containers of a new pod can have.
const NOT_LATER: [&str; 8] = [
    "ports",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
];

/// The old pod with the ephemeral containers of the new one.
pub(crate) fn prepare(new: &mut Value, old: &Value) {
    let mut kept = old.clone();
    for name in ["name", "namespace", "uid", "resourceVersion"] {
        set_metadata(&mut kept, name, get_metadata(new, name).clone());
    }
    let none = Value::Null;
    let (spec, was) = (new.get("spec").unwrap_or(&none), old.get("spec").unwrap_or(&none));
    let mut wanted: Vec<Value> = items(spec, "ephemeralContainers").cloned().collect();
    let place =
        |one: &Value| items(was, "ephemeralContainers").position(|had| had.get("name") == one.get("name"));
    wanted.sort_by_key(|one| place(one).unwrap_or(usize::MAX));
    if let Some(spec) = kept.get_mut("spec") {
        if wanted.is_empty() {
            remove(spec, "ephemeralContainers");
        } else {
            set(spec, "ephemeralContainers", wanted);
        }
    }
    *new = kept;
}

pub(crate) fn validate(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Errors(pod::validate(new));
    let none = Value::Null;
    let (spec, was) = (new.get("spec").unwrap_or(&none), old.get("spec").unwrap_or(&none));
    additions(&mut errors, spec);
    let list = "spec.ephemeralContainers";
    for had in items(was, "ephemeralContainers") {
        let name = text(had, "name");
        let mut found = items(spec, "ephemeralContainers").filter(|one| text(one, "name") == name);
        match found.next() {
            None => errors.forbidden(
                list,
                &format!("existing ephemeral containers {name:?} may not be removed\n"),
            ),
            Some(one) if one != had => errors.forbidden(
                list,
                &format!("existing ephemeral containers {name:?} may not be changed\n"),
            ),
            Some(_) => {}
        }
    }
    errors.0
}

/// The rules of each ephemeral container.
fn additions(errors: &mut Errors, spec: &Value) {
    let others = || {
        ["containers", "initContainers"]
            .into_iter()
            .flat_map(|list| items(spec, list))
    };
    let mut names: BTreeSet<&str> = others().map(|one| text(one, "name")).collect();
    for (index, one) in items(spec, "ephemeralContainers").enumerate() {
        let path = format!("spec.ephemeralContainers[{index}]");
        let name = text(one, "name");
        if name.is_empty() {
            errors.required(format!("{path}.name"), "");
        } else if let Some(reason) = validate::not_a_dns_label(name) {
            errors.invalid(format!("{path}.name"), name, reason);
        } else if !names.insert(name) {
            errors.add(format!("{path}.name"), Kind::Duplicate, name, "");
        }
        if text(one, "image").is_empty() {
            errors.required(format!("{path}.image"), "");
        }
        errors.0.extend(validate::environment(one, &path));
        let target = text(one, "targetContainerName");
        if !target.is_empty() && !others().any(|other| text(other, "name") == target) {
            errors.add(format!("{path}.targetContainerName"), Kind::NotFound, target, "");
        }
        for member in NOT_LATER {
            if one.get(member).is_some_and(|value| !value.is_null()) {
                let why = "cannot be set for an Ephemeral Container";
                errors.forbidden(format!("{path}.{member}"), why);
            }
        }
        let resources = one.get("resources").and_then(Value::as_object);
        if resources.is_some_and(|resources| !resources.is_empty()) {
            let why = "cannot be set for an Ephemeral Container";
            errors.forbidden(format!("{path}.resources"), why);
        }
        for (place, mount) in items(one, "volumeMounts").enumerate() {
            for member in ["subPath", "subPathExpr"] {
                if !text(mount, member).is_empty() {
                    let why = "cannot be set for an Ephemeral Container";
                    errors.forbidden(format!("{path}.volumeMounts[{place}].{member}"), why);
                }
            }
        }
    }
}

fn text<'a>(of: &'a Value, name: &str) -> &'a str {
    of.get(name).and_then(Value::as_str).unwrap_or_default()
}
