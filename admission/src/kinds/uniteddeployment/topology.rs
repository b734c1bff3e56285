//! Subsets: their names, their nodes, and how they share the replicas.
//!
//! Either subsets say how many replicas they have, or they say between how many; never both in one object.

use std::collections::BTreeSet;

use go_compat::IntOrString;
use kube_schema::validate::{self, Errors, Kind};
use serde::Deserialize as _;
use serde_json::Value;

use super::items;
use crate::json::{fill, integer, member, present, text};

const SUBSETS: &str = "spec.topology.subsets";
const STRATEGY: &str = "spec.topology.scheduleStrategy";
/// What counts for a subset without `maxReplicas`.
const UNLIMITED: i64 = 1_000_000;
const BOUNDS: [&str; 2] = ["minReplicas", "maxReplicas"];

/// The subsets; none if there is no topology.
pub(super) fn subsets(spec: &Value) -> &[Value] {
    member(spec, "topology")
        .map(|topology| items(topology, "subsets"))
        .unwrap_or_default()
}

/// Where any subset has a bound and none has a number, the least is nothing.
pub(super) fn defaults(spec: &mut Value) {
    let has = |name: &str| subsets(spec).iter().any(|subset| present(subset, name).is_some());
    if has("replicas") || !BOUNDS.iter().any(|name| has(name)) {
        return;
    }
    let subsets = spec
        .pointer_mut("/topology/subsets")
        .and_then(Value::as_array_mut);
    for subset in subsets.into_iter().flatten() {
        fill(subset, "minReplicas", 0);
    }
}

/// Everything in `spec.topology`.
pub(super) fn check(errors: &mut Errors, spec: &Value) {
    let subsets = subsets(spec);
    let mut seen = BTreeSet::new();
    for (index, subset) in subsets.iter().enumerate() {
        let path = format!("{SUBSETS}[{index}]");
        named(errors, text(subset, "name"), &mut seen, format!("{path}.name"));
        if let Some(term) = member(subset, "nodeSelectorTerm") {
            let path = format!("{path}.nodeSelectorTerm");
            errors.0.extend(validate::node_selector_term(term, &path));
        }
        for (index, toleration) in items(subset, "tolerations").iter().enumerate() {
            let path = format!("{path}.tolerations[{index}]");
            errors.0.extend(validate::toleration(toleration, &path));
        }
    }
    strategy(errors, spec, subsets);
    let total = integer(spec, "replicas");
    let has = |subset: &Value, names: &[&str]| names.iter().any(|name| present(subset, name).is_some());
    let by_number = subsets.iter().any(|subset| has(subset, &["replicas"]));
    let by_bounds = subsets.iter().any(|subset| has(subset, &BOUNDS));
    let before = errors.0.len();
    let amounts: Vec<Amounts> = subsets
        .iter()
        .enumerate()
        .map(|(index, subset)| Amounts::read(errors, subset, total, &format!("{SUBSETS}[{index}]")))
        .collect();
    if errors.0.len() > before {
        return;
    }
    match (by_number, by_bounds) {
        (true, true) => {
            let detail = "replicas of one subset exclude minReplicas and maxReplicas of all";
            errors.invalid(SUBSETS, subsets.len(), detail);
        }
        (true, false) => numbers(errors, &amounts, total),
        (false, true) => bounds(errors, &amounts, total),
        (false, false) => {}
    }
}

fn named<'a>(errors: &mut Errors, name: &'a str, seen: &mut BTreeSet<&'a str>, path: String) {
    if name.is_empty() {
        errors.required(path, "");
    } else if let Some(reason) = validate::not_a_dns_label(name) {
        errors.invalid(path, name, reason);
    } else if !seen.insert(name) {
        errors.add(path, Kind::Duplicate, name, "");
    }
}

fn strategy(errors: &mut Errors, spec: &Value, subsets: &[Value]) {
    let strategy = spec.pointer("/topology/scheduleStrategy").unwrap_or(&Value::Null);
    if text(strategy, "type") != "Adaptive" {
        return;
    }
    for (index, subset) in subsets.iter().enumerate() {
        if present(subset, "replicas").is_some() {
            let path = format!("{SUBSETS}[{index}].replicas");
            errors.forbidden(path, "an Adaptive strategy decides how many");
        }
    }
    let reserves = strategy.pointer("/adaptive/reserveUnschedulablePods") == Some(&Value::Bool(true));
    let template = spec.get("template").unwrap_or(&Value::Null);
    let can = ["deploymentTemplate", "cloneSetTemplate"].map(|name| present(template, name).is_some());
    if reserves && !can.contains(&true) {
        let detail = "pods can be reserved with deploymentTemplate or cloneSetTemplate alone";
        errors.invalid(STRATEGY, strategy.clone(), detail);
    }
}

/// What a subset says of its replicas.
struct Amounts {
    replicas: Option<i64>,
    least: i64,
    most: Option<i64>,
}

impl Amounts {
    fn read(errors: &mut Errors, subset: &Value, total: Option<i64>, path: &str) -> Self {
        let mut read = |name: &str| {
            let value = present(subset, name)?;
            let found = amount(value, total);
            if found.is_none() {
                let detail = "must be a count, not negative, or a percentage of spec.replicas, 0% to 100%";
                errors.invalid(format!("{path}.{name}"), value.clone(), detail);
            }
            found
        };
        let [replicas, least, most] = ["replicas", "minReplicas", "maxReplicas"].map(&mut read);
        let least = least.unwrap_or_default();
        if least > most.unwrap_or(UNLIMITED) {
            let detail = "must not be more than maxReplicas";
            let value = subset.get("minReplicas").cloned().unwrap_or_default();
            errors.invalid(format!("{path}.minReplicas"), value, detail);
        }
        Self {
            replicas,
            least,
            most,
        }
    }
}

/// A count, or a percentage of the whole, rounded to the nearest.
fn amount(value: &Value, total: Option<i64>) -> Option<i64> {
    match IntOrString::deserialize(value).ok()? {
        IntOrString::Int(count) => Some(i64::from(count)).filter(|count| *count >= 0),
        IntOrString::String(text) => {
            let percent: i64 = text.strip_suffix('%')?.parse().ok()?;
            let good = (0..=100).contains(&percent);
            good.then_some((total?.saturating_mul(percent).saturating_add(50)) / 100)
        }
    }
}

fn numbers(errors: &mut Errors, all: &[Amounts], total: Option<i64>) {
    let sum: i64 = all.iter().filter_map(|one| one.replicas).sum();
    let complete = all.iter().all(|one| one.replicas.is_some());
    let detail = match total {
        None if !complete => "without spec.replicas every subset must say how many it has",
        Some(total) if sum > total => "subsets must not have more replicas than spec.replicas in sum",
        Some(total) if complete && sum != total => {
            "subsets that all say how many must have spec.replicas in sum"
        }
        _ => return,
    };
    errors.invalid(SUBSETS, sum, detail);
}

fn bounds(errors: &mut Errors, all: &[Amounts], total: Option<i64>) {
    let least: i64 = all.iter().map(|one| one.least).sum();
    let most: i64 = all.iter().map(|one| one.most.unwrap_or(UNLIMITED)).sum();
    let detail = if total.is_none() {
        "minReplicas and maxReplicas need spec.replicas"
    } else if all.iter().all(|one| one.most.is_some()) {
        "one subset at least must be without maxReplicas"
    } else if least > most {
        "minReplicas must not be more than maxReplicas in sum"
    } else {
        return;
    };
    errors.invalid(SUBSETS, all.len(), detail);
}
