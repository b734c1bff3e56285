//! Rules about how pods are updated.
//!
//! `v1beta1` has the parameters in an optional block, checked whenever it is there, whatever the type. `v1alpha1` mixes
//! them with the type; there `OnDelete`, which reads none of them, needs none of them either.

use std::collections::BTreeSet;

use go_compat::{IntOrString, Rounding};
use kube_schema::validate::{self, Errors, Kind};
use serde_json::Value;

use super::spec::{int_or_string, not_negative};
use crate::json::{items, member, text};
use crate::kinds::cloneset::version::Version;
use crate::workload;

const SCALE: &str = "spec.scaleStrategy";
const POLICIES: &[&str] = &["ReCreate", "InPlaceIfPossible", "InPlaceOnly"];
/// `OnDelete` is what a stored `v1beta1` object of that type reads as.
const V1ALPHA1_TYPES: &[&str] = &["ReCreate", "InPlaceIfPossible", "InPlaceOnly", "OnDelete"];
const V1BETA1_TYPES: &[&str] = &["RollingUpdate", "OnDelete"];

/// Everything in `spec.updateStrategy`, and the limit in `spec.scaleStrategy`.
pub(super) fn check(errors: &mut Errors, spec: &Value, version: Version) {
    if let Some(scale) = member(spec, "scaleStrategy") {
        count(errors, scale, "maxUnavailable", 100, SCALE);
    }
    let Some(update) = member(spec, "updateStrategy") else {
        return;
    };
    let kind = text(update, "type");
    let types = match version {
        Version::V1alpha1 => V1ALPHA1_TYPES,
        Version::V1beta1 => V1BETA1_TYPES,
    };
    errors.one_of("spec.updateStrategy.type", kind, types);
    let Some(strategy) = version.strategy(spec) else {
        return;
    };
    let path = version.strategy_path();
    let policy = version.policy(spec);
    if version == Version::V1beta1 {
        errors.one_of(format!("{path}.podUpdatePolicy"), policy, POLICIES);
        pre_download(errors, strategy, &format!("{path}.inPlaceUpdateStrategy"));
    }
    workload::grace_period(errors, strategy, path);
    let needed = version == Version::V1beta1 || kind != "OnDelete";
    let replicas = spec.get("replicas").and_then(Value::as_i64);
    let replicas = i32::try_from(replicas.unwrap_or(1)).unwrap_or(i32::MAX);
    partition(errors, strategy, needed, path);
    let unavailable = count(errors, strategy, "maxUnavailable", replicas, path);
    let surge = count(errors, strategy, "maxSurge", replicas, path);
    if let Some(surge @ 1..) = surge
        && policy == "InPlaceOnly"
    {
        errors.invalid(format!("{path}.maxSurge"), surge, "must be 0 with InPlaceOnly");
    }
    let stuck = unavailable.is_some_and(|count| count < 1) && surge.is_some_and(|count| count < 1);
    if needed && replicas > 0 && stuck {
        let value = strategy.get("maxUnavailable").cloned().unwrap_or_default();
        let detail = "must be at least 1 while maxSurge is 0";
        errors.invalid(format!("{path}.maxUnavailable"), value, detail);
    }
    priority(errors, strategy, &format!("{path}.priorityStrategy"));
    scatter(errors, strategy, &format!("{path}.scatterStrategy"));
}

fn partition(errors: &mut Errors, strategy: &Value, needed: bool, path: &str) {
    let path = format!("{path}.partition");
    match int_or_string(strategy, "partition") {
        None if needed => errors.required(path, ""),
        None => {}
        // of a hundred: the sign of a share must not depend on how many replicas there are now
        Some(value) => match value.scaled_a(100, Rounding::Up) {
            Ok(0..) => {}
            Ok(_) => errors.invalid(path, json(&value), "must be greater than or equal to 0"),
            Err(error) => errors.invalid(path, json(&value), &error.to_string()),
        },
    }
}

/// A count as the controller may use it, 0 if absent; `None` after an error.
fn count(errors: &mut Errors, strategy: &Value, name: &str, replicas: i32, path: &str) -> Option<i32> {
    let Some(value) = int_or_string(strategy, name) else {
        return Some(0);
    };
    // of a hundred: the sign of a share must not depend on how many replicas there are now
    let detail = match (
        value.scaled_a(100, Rounding::Up),
        value.scaled_a(replicas, Rounding::Up),
    ) {
        (Ok(..0), _) => "must be greater than or equal to 0".to_owned(),
        (Ok(_), Ok(count)) => return Some(count),
        (Err(error), _) | (_, Err(error)) => error.to_string(),
    };
    errors.invalid(format!("{path}.{name}"), json(&value), &detail);
    None
}

/// Warns of a limit that lets no pod be created.
pub(super) fn frozen(spec: &Value) -> Option<String> {
    let value = int_or_string(member(spec, "scaleStrategy")?, "maxUnavailable")?;
    let is_zero = value.scaled_a(100, Rounding::Up) == Ok(0);
    is_zero.then(|| {
        format!("{SCALE}.maxUnavailable: 0 keeps the set from creating pods, also those that replace others")
    })
}

fn pre_download(errors: &mut Errors, strategy: &Value, path: &str) {
    let Some(strategy) = member(strategy, "inPlaceUpdateStrategy") else {
        return;
    };
    if let Some(value) = int_or_string(strategy, "imagePreDownloadParallelism") {
        let good = match &value {
            IntOrString::Int(count) => *count >= 0,
            IntOrString::String(text) => text.parse::<i32>().is_ok_and(|count| count >= 0),
        };
        if !good {
            let detail = "must be a non-negative integer";
            errors.invalid(
                format!("{path}.imagePreDownloadParallelism"),
                json(&value),
                detail,
            );
        }
    }
    for name in [
        "imagePreDownloadTimeoutSeconds",
        "imagePreDownloadMinUpdatedReadyPods",
    ] {
        not_negative(errors, strategy, name, format!("{path}.{name}"));
    }
}

/// Priorities among pods.
pub(crate) fn priority(errors: &mut Errors, strategy: &Value, path: &str) {
    let Some(strategy) = member(strategy, "priorityStrategy") else {
        return;
    };
    let (order, weight) = (
        items(strategy, "orderPriority"),
        items(strategy, "weightPriority"),
    );
    if !order.is_empty() && !weight.is_empty() {
        errors.forbidden(path, "orderPriority and weightPriority exclude each other");
    }
    for (index, term) in order.iter().enumerate() {
        if text(term, "orderedKey").is_empty() {
            errors.required(format!("{path}.orderPriority[{index}].orderedKey"), "");
        }
    }
    for (index, term) in weight.iter().enumerate() {
        let path = format!("{path}.weightPriority[{index}]");
        let weight = term.get("weight").and_then(Value::as_i64).unwrap_or(0);
        if !(0..=100).contains(&weight) {
            errors.invalid(format!("{path}.weight"), weight, "must be between 0 and 100");
        }
        let path = format!("{path}.matchSelector");
        let selector = member(term, "matchSelector").unwrap_or(&Value::Null);
        if is_empty(selector, "matchLabels") && is_empty(selector, "matchExpressions") {
            errors.required(path, "an empty selector matches every pod");
        } else {
            errors.0.extend(validate::selector(selector, &path));
        }
    }
}

fn is_empty(object: &Value, name: &str) -> bool {
    match object.get(name) {
        Some(Value::Object(map)) => map.is_empty(),
        Some(Value::Array(list)) => list.is_empty(),
        _ => true,
    }
}

/// Terms that pods are scattered by.
pub(crate) fn scatter(errors: &mut Errors, strategy: &Value, path: &str) {
    let mut seen = BTreeSet::new();
    for (index, term) in items(strategy, "scatterStrategy").iter().enumerate() {
        let (key, value) = (text(term, "key"), text(term, "value"));
        if key.is_empty() {
            errors.required(format!("{path}[{index}].key"), "");
        }
        if !seen.insert((key, value)) {
            errors.add(
                format!("{path}[{index}]"),
                Kind::Duplicate,
                format!("{key}:{value}"),
                "",
            );
        }
    }
}

fn json(value: &IntOrString) -> Value {
    match value {
        IntOrString::Int(count) => (*count).into(),
        IntOrString::String(text) => text.as_str().into(),
    }
}
