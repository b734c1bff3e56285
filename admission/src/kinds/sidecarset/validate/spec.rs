//! Rules about whom a set is for and how it changes pods.

use go_compat::{IntOrString, Rounding};
use kruise_plan_kit::sidecars::Matcher;
use kube_schema::validate::{self, Errors};
use serde::Deserialize as _;
use serde_json::Value;

use crate::json::{items, text};
use crate::kinds::cloneset::strategy;

const POLICIES: &[&str] = &["Always", "Partial"];

/// Selectors and strategies.
pub(super) fn check(errors: &mut Errors, spec: &Value, matcher: &Matcher) {
    match spec.get("selector").filter(|one| !one.is_null()) {
        None => errors.required("spec.selector", "no selector defined for SidecarSet"),
        Some(selector) => not_empty(errors, selector, matcher.pods.is_empty(), "spec.selector"),
    }
    if let Some(selector) = spec.get("namespaceSelector").filter(|one| !one.is_null()) {
        let is_empty = is_empty(selector);
        not_empty(errors, selector, is_empty, "spec.namespaceSelector");
    }
    revision(errors, spec);
    let null = Value::Null;
    let update = spec.get("updateStrategy").unwrap_or(&null);
    if text(update, "type") == "RollingUpdate" {
        rolling(errors, update);
    }
    if items(spec, "containers").is_empty() && items(spec, "initContainers").is_empty() {
        errors.required(
            "spec.containers",
            "no container or initContainer defined for SidecarSet",
        );
    }
}

fn is_empty(selector: &Value) -> bool {
    let is_empty = |name: &str| match selector.get(name) {
        Some(Value::Object(map)) => map.is_empty(),
        Some(Value::Array(list)) => list.is_empty(),
        _ => true,
    };
    is_empty("matchLabels") && is_empty("matchExpressions")
}

fn not_empty(errors: &mut Errors, selector: &Value, is_empty: bool, path: &str) {
    if is_empty {
        errors.invalid(
            path,
            selector.clone(),
            "empty selector is not valid for SidecarSet",
        );
    } else {
        errors.0.extend(validate::selector(selector, path));
    }
}

fn revision(errors: &mut Errors, spec: &Value) {
    let path = "spec.injectionStrategy.revision";
    let Some(revision) = spec
        .pointer("/injectionStrategy/revision")
        .filter(|one| one.is_object())
    else {
        return;
    };
    let names = ["revisionName", "customVersion"];
    if names
        .iter()
        .all(|name| revision.get(*name).is_none_or(Value::is_null))
    {
        errors.required(path, "revisionName or customVersion must name a revision");
    }
    // both become part of requests
    let name = revision.get("revisionName").and_then(Value::as_str);
    if let Some(name) = name.filter(|name| !validate::is_dns_subdomain(name)) {
        let detail = "must be the name of an object: lower-case letters, digits, '-' and '.'";
        errors.invalid(format!("{path}.revisionName"), name, detail);
    }
    let version = text(revision, "customVersion");
    if let Some(why) = validate::not_a_label_value(version) {
        errors.invalid(format!("{path}.customVersion"), version, why);
    }
    errors.one_of(format!("{path}.policy"), text(revision, "policy"), POLICIES);
}

fn rolling(errors: &mut Errors, update: &Value) {
    let path = "spec.updateStrategy";
    let selector = update.get("selector").filter(|one| !one.is_null());
    if let Some(selector) = selector {
        not_empty(errors, selector, is_empty(selector), &format!("{path}.selector"));
        // any text counts as set, a number only beyond 0
        let is_set = update.get("partition").is_some_and(|partition| match partition {
            Value::String(_) => true,
            other => other.as_i64().is_some_and(|count| count != 0),
        });
        if is_set {
            errors.forbidden(path, "partition and selector exclude each other");
        }
    }
    for name in ["partition", "maxUnavailable"] {
        let Some(found) = update.get(name).filter(|one| !one.is_null()) else {
            continue;
        };
        // of a hundred: the sign of a share must not depend on how many pods there are now
        let scaled = IntOrString::deserialize(found)
            .ok()
            .map(|value| value.scaled_a(100, Rounding::Up));
        if !matches!(scaled, Some(Ok(0..))) {
            let detail = "must be a number or a percentage, not below 0";
            errors.invalid(format!("{path}.{name}"), found.clone(), detail);
        }
    }
    strategy::priority(errors, update, &format!("{path}.priorityStrategy"));
    strategy::scatter(errors, update, &format!("{path}.scatterStrategy"));
}
