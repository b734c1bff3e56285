//! What `resize` may change of a pod: processor time and memory of its containers, and how they take it.

use kube_schema::validate::{Errors, FieldError};
use serde_json::Value;

use super::{items, keep, pod, pod_template, remove, set};
use crate::object::{get_metadata, set_metadata};

/// What a container may get another of.
const MEMBERS: [&str; 2] = ["resources", "resizePolicy"];

/// The old pod with other resources. Where containers came, went or changed places all of the new specification stays,
/// to be refused.
pub(crate) fn prepare(new: &mut Value, old: &Value) {
    let lists = ["containers", "initContainers"];
    let names = |pod: &Value, list: &str| -> Vec<Value> {
        let spec = pod.get("spec").unwrap_or(&Value::Null);
        items(spec, list)
            .map(|one| one.get("name").cloned().unwrap_or_default())
            .collect()
    };
    keep(new, old, "status");
    for name in ["labels", "annotations", "finalizers", "ownerReferences"] {
        set_metadata(new, name, get_metadata(old, name).clone());
    }
    if lists.iter().any(|list| names(new, list) != names(old, list)) {
        return;
    }
    let (Some(spec), Some(was)) = (new.get_mut("spec"), old.get("spec")) else {
        return;
    };
    let mut kept = was.clone();
    for list in lists {
        for (container, wanted) in super::each(&mut kept, list).zip(items(spec, list)) {
            for member in MEMBERS {
                match wanted.get(member) {
                    Some(value) => set(container, member, value.clone()),
                    None => remove(container, member),
                }
            }
        }
    }
    *spec = kept;
}

pub(crate) fn validate(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Errors(pod::validate(new));
    let (Some(spec), Some(was)) = (new.get("spec"), old.get("spec")) else {
        return errors.0;
    };
    let shared = |spec: &Value| {
        let lists = ["requests", "limits"].map(|list| spec.pointer(&format!("/resources/{list}")).cloned());
        lists
            .into_iter()
            .flatten()
            .any(|list| list.as_object().is_some_and(|list| !list.is_empty()))
    };
    if shared(was) || shared(spec) {
        let mut alone = Errors(Vec::new());
        alone.forbidden("", "pods with pod-level resources cannot be resized");
        return alone.0;
    }
    let class = old.pointer("/status/qosClass").cloned().unwrap_or_default();
    if class != pod_template::quality(spec) {
        errors.invalid(
            "spec",
            class,
            "Pod QOS Class may not change as a result of resizing",
        );
    }
    if !is_supported(old) {
        errors.forbidden("spec", "Pod running on node without support for resize");
    }
    if order(spec, was, &mut errors) {
        amounts(spec, was, &mut errors);
    }
    errors.0
}

/// Does the pod's node report what its containers have? Without one that runs that is unknown.
fn is_supported(pod: &Value) -> bool {
    let status = pod.get("status").unwrap_or(&Value::Null);
    let mut running =
        items(status, "containerStatuses").filter(|one| one.pointer("/state/running").is_some());
    running.next().is_none_or(|one| one.get("resources").is_some())
}

/// Are the containers those that they were?
fn order(new: &Value, old: &Value, errors: &mut Errors) -> bool {
    let before = errors.0.len();
    for list in ["containers", "initContainers"] {
        if items(new, list).count() != items(old, list).count() {
            let why = format!("{list} may not be added or removed on resize");
            errors.forbidden(format!("spec.{list}"), &why);
            continue;
        }
        for (index, (one, was)) in items(new, list).zip(items(old, list)).enumerate() {
            if one.get("name") != was.get("name") {
                let why = format!("{list} may not be renamed or reordered on resize");
                errors.forbidden(format!("spec.{list}[{index}].name"), &why);
            }
        }
    }
    errors.0.len() == before
}

fn amounts(new: &Value, old: &Value, errors: &mut Errors) {
    let restarts = |one: &Value| one.get("restartPolicy") == Some(&"Always".into());
    for list in ["initContainers", "containers"] {
        let pairs = items(new, list).zip(items(old, list)).enumerate();
        for (index, (one, was)) in pairs.filter(|(_, (_, was))| list == "containers" || restarts(was)) {
            for amounts in ["requests", "limits"] {
                let of = |one: &Value| {
                    one.pointer(&format!("/resources/{amounts}"))
                        .cloned()
                        .unwrap_or_default()
                };
                let (has, had) = (of(one), of(was));
                let gone = had
                    .as_object()
                    .is_some_and(|had| had.keys().any(|name| has.get(name).is_none()));
                if gone {
                    let why = format!("resource {amounts} cannot be removed");
                    errors.forbidden(format!("spec.{list}[{index}].resources.{amounts}"), &why);
                }
            }
        }
    }
    for (list, why) in [
        ("containers", "only cpu and memory resources are mutable"),
        (
            "initContainers",
            "only cpu and memory resources for sidecar containers are mutable",
        ),
    ] {
        for (one, was) in items(new, list).zip(items(old, list)) {
            if list == "initContainers" && !restarts(one) {
                if one != was {
                    errors.forbidden("spec", "resources for non-sidecar init containers are immutable");
                }
            } else if frozen(one, was) != *was {
                errors.forbidden("spec", why);
            }
        }
    }
}

/// A container with the amounts of processor time and memory that it had.
fn frozen(one: &Value, was: &Value) -> Value {
    let mut one = one.clone();
    for list in ["requests", "limits"] {
        let pointer = format!("/resources/{list}");
        let Some(amounts) = one.pointer_mut(&pointer) else {
            continue;
        };
        for name in ["cpu", "memory"] {
            match was.pointer(&pointer).and_then(|had| had.get(name)) {
                Some(had) => set(amounts, name, had.clone()),
                None => remove(amounts, name),
            }
        }
        let is_bare = amounts.as_object().is_some_and(serde_json::Map::is_empty);
        if is_bare
            && was.pointer(&pointer).is_none()
            && let Some(resources) = one.get_mut("resources")
        {
            remove(resources, list);
        }
    }
    one
}
