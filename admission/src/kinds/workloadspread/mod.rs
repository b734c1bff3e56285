//! WorkloadSpreads: whose pods, and subsets that can take all of them.
//!
//! | Field | Rule |
//! |---|---|
//! | `targetRef` | complete; known kinds are of their group; group, kind and name stay |
//! | `subsets` | one at least; named, each name once |
//! | `subsets[].requiredNodeSelector`, `preferredNodeSelector`, `tolerations` | as a server takes them in pods |
//! | `subsets[].maxReplicas` | all counts or all percentages; not negative; counts alone for a StatefulSet |
//! | percentages | a hundred in sum at most; if less, the last subset has no limit |
//! | `scheduleStrategy` | known; `adaptive` with `Adaptive` alone, whose last subset of several has no limit |
//! | `adaptive.rescheduleCriticalSeconds` | not so long that a controller gives up before |
//! | `targetRef` of a new object | another kind is listed in ConfigMap `kruise-configuration`; nothing else spreads the workload |
//! | `subsets[].patch`, new or changed | makes a pod of the template of the workload, if that exists: [`patches`] |

mod patches;

use std::collections::BTreeSet;

use go_compat::{IntOrString, Rounding};
use kruise_api::names;
use kruise_api::workloadspread::WorkloadSpread;
use kube_schema::validate::{self, Errors, Kind};
use serde::Deserialize as _;
use serde_json::Value;

use super::{KindWebhooks, Scope, target};
use crate::disruption::{EVICTIONS, Evictions};
use crate::json::{integer, items, member, present, text};
use crate::lookup::Reader;
use crate::pod::sidecars::Reach;
use crate::widening::PODS_OF_SETS;
use crate::widening::{StoredSoon, Widening};

/// The webhooks of the kind.
pub static WEBHOOKS: KindWebhooks = KindWebhooks {
    validating: Some("vworkloadspread.kb.io"),
    codes: (400, 400),
    newest: true,
    gate: |options| (!options.workload_spread).then_some("WorkloadSpread"),
    rules,
    changes,
    others,
    widens,
    may_widen: true,
    ..KindWebhooks::of(&kruise_api::workloadspread::KIND)
};

/// Webhooks must be called for the pods of the target of a new object, and for evictions in its namespace. The
/// target does not change.
fn widens(spread: &Value, scope: &Scope<'_>) -> Vec<Widening> {
    if scope.old.is_some() {
        return Vec::new();
    }
    let Ok(mut spread) = WorkloadSpread::from_value(spread.clone()) else {
        return Vec::new();
    };
    scope.namespace.clone_into(&mut spread.metadata.namespace);
    let object = StoredSoon::of(scope.kind, &spread.metadata);
    let evictions = Evictions::in_namespace(&spread.metadata.namespace);
    let pods =
        Reach::of_spread(&spread).map(|reach| Widening::of_pods(PODS_OF_SETS, object.clone(), [reach]));
    pods.into_iter()
        .chain([Widening::of_evictions(EVICTIONS, object.clone(), evictions)])
        .collect()
}

const SUBSETS: &str = "spec.subsets";
const STRATEGY: &str = "spec.scheduleStrategy";
/// Kinds whose groups are known.
const WORKLOADS: &[(&str, &[&str])] = &[
    ("CloneSet", &["apps.kruise.io"]),
    ("Deployment", &["apps"]),
    ("ReplicaSet", &["apps"]),
    ("Job", &["batch"]),
    ("StatefulSet", &["apps", "apps.kruise.io"]),
];
/// Where administrators list further kinds.
const LISTED: &str = names::workloadspread::WORKLOADS;
/// Seconds for which a deployment may wait, less what the controller needs itself: all subsets share them.
const PATIENCE: i64 = 295;

fn rules(errors: &mut Errors, object: &Value, _: &Scope<'_>) {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let found = spec.get("targetRef").unwrap_or(&Value::Null);
    whose(errors, found);
    let subsets = items(spec, "subsets");
    if subsets.is_empty() {
        errors.required(SUBSETS, "one subset at least is needed");
    }
    let mut seen = BTreeSet::new();
    for (index, subset) in subsets.iter().enumerate() {
        let path = format!("{SUBSETS}[{index}]");
        let name = text(subset, "name");
        if name.is_empty() {
            errors.required(format!("{path}.name"), "");
        } else if !seen.insert(name) {
            errors.add(format!("{path}.name"), Kind::Duplicate, name, "");
        }
        nodes(errors, subset, &path);
    }
    limits(errors, subsets, text(found, "kind") == "StatefulSet");
    strategy(errors, spec, subsets);
}

fn whose(errors: &mut Errors, found: &Value) {
    if !found.is_object() {
        return errors.required(target::PATH, "");
    }
    target::complete(errors, found, "apiVersion, kind and name are needed");
    let Some((group, kind)) = target::group_kind(found) else {
        return;
    };
    let known = WORKLOADS.iter().find(|(known, _)| *known == kind);
    if let Some((_, groups)) = known.filter(|(_, groups)| !groups.contains(&group)) {
        let detail = format!("{kind} is of group {}", groups.join(" or "));
        errors.invalid(target::PATH, found.clone(), &detail);
    }
}

fn nodes(errors: &mut Errors, subset: &Value, path: &str) {
    if let Some(term) = member(subset, "requiredNodeSelector") {
        let path = format!("{path}.requiredNodeSelector");
        errors.0.extend(validate::node_selector_term(term, &path));
    }
    for (index, term) in items(subset, "preferredNodeSelector").iter().enumerate() {
        let path = format!("{path}.preferredNodeSelector[{index}]");
        errors.0.extend(validate::preferred_term(term, &path));
    }
    for (index, toleration) in items(subset, "tolerations").iter().enumerate() {
        let path = format!("{path}.tolerations[{index}]");
        errors.0.extend(validate::toleration(toleration, &path));
    }
}

/// The first limit that is wrong says enough.
fn limits(errors: &mut Errors, subsets: &[Value], counts_alone: bool) {
    let limit =
        |subset: &Value| present(subset, "maxReplicas").and_then(|one| IntOrString::deserialize(one).ok());
    let (mut is_text, mut sum) = (None, 0);
    for (index, subset) in subsets.iter().enumerate() {
        let Some(limit) = limit(subset) else {
            continue;
        };
        let value = subset.get("maxReplicas").cloned().unwrap_or_default();
        let path = format!("{SUBSETS}[{index}].maxReplicas");
        let of_text = matches!(limit, IntOrString::String(_));
        if *is_text.get_or_insert(of_text) != of_text {
            return errors.invalid(path, value, "limits must be all counts or all percentages");
        }
        if of_text && counts_alone {
            return errors.invalid(path, value, "limits for a StatefulSet are counts");
        }
        let share = share(&limit);
        if !matches!(share, Some(0..)) {
            return errors.invalid(path, value, "must be a count or a percentage, not below 0");
        }
        sum += i64::from(share.unwrap_or_default());
        if of_text && sum > 100 {
            return errors.invalid(path, value, "percentages must not be more than 100% in sum");
        }
    }
    if is_text == Some(true)
        && sum < 100
        && let Some(last) = subsets.last().and_then(|last| present(last, "maxReplicas"))
    {
        let path = format!("{SUBSETS}[{}].maxReplicas", subsets.len() - 1);
        let detail = "percentages of less than 100% in sum need a last subset without one";
        errors.invalid(path, last.clone(), detail);
    }
}

/// Of a hundred. A text without a sign can be no limit; older objects that have one may be updated otherwise.
fn share(limit: &IntOrString) -> Option<i32> {
    limit.scaled_a(100, Rounding::Up).ok()
}

fn strategy(errors: &mut Errors, spec: &Value, subsets: &[Value]) {
    let Some(strategy) = member(spec, "scheduleStrategy") else {
        return;
    };
    let kind = text(strategy, "type");
    errors.one_of(format!("{STRATEGY}.type"), kind, &["Adaptive", "Fixed"]);
    let Some(adaptive) = present(strategy, "adaptive") else {
        return;
    };
    if kind != "Adaptive" {
        errors.invalid(
            format!("{STRATEGY}.type"),
            kind,
            "must be Adaptive if adaptive is set",
        );
    }
    let others = subsets.len().saturating_sub(1);
    if let (1.., Some(limit)) = (
        others,
        subsets.last().and_then(|last| present(last, "maxReplicas")),
    ) {
        let path = format!("{SUBSETS}[{others}].maxReplicas");
        errors.invalid(
            path,
            limit.clone(),
            "the last subset of an Adaptive strategy has no limit",
        );
    }
    let most = match i64::try_from(others) {
        Ok(others @ 1..) => PATIENCE / others,
        _ => i64::from(i32::MAX),
    };
    if let Some(seconds) = integer(adaptive, "rescheduleCriticalSeconds")
        && !(0..=most).contains(&seconds)
    {
        let detail = format!("must be 0 to {most} with this many subsets");
        errors.invalid(
            format!("{STRATEGY}.adaptive.rescheduleCriticalSeconds"),
            seconds,
            &detail,
        );
    }
}

fn changes(errors: &mut Errors, new: &Value, old: &Value, _: &Scope<'_>) {
    let null = Value::Null;
    let of = |object: &Value| {
        let found = object.pointer("/spec/targetRef").unwrap_or(&null);
        let (group, kind) = target::group_kind(found).unwrap_or_default();
        [group, kind, text(found, "name")].map(str::to_owned)
    };
    if of(new) != of(old) {
        let value = new.pointer(&format!("/{}", target::PATH.replace('.', "/")));
        let detail = "group, kind and name of the workload cannot be changed";
        errors.invalid(target::PATH, value.cloned().unwrap_or_default(), detail);
    }
}

fn others(errors: &mut Errors, object: &Value, scope: &Scope<'_>, reader: &mut Reader<'_>) {
    let found = object.pointer("/spec/targetRef").unwrap_or(&Value::Null);
    let is_known = WORKLOADS.iter().any(|(known, _)| *known == text(found, "kind"));
    if scope.old.is_none() && !is_known {
        target::named_by_administrators(errors, found, LISTED, reader);
    }
    target::unique(errors, &kruise_api::workloadspread::KIND, object, scope, reader);
    patches::check(errors, object, scope, reader);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{Case, case, put};
    use super::*;

    const SPREAD: Case = case("WorkloadSpread", good);

    fn good() -> Value {
        json!({
            "targetRef": {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web"},
            "subsets": [
                {
                    "name": "reserved", "maxReplicas": 4, "newerThanUs": true,
                    "requiredNodeSelector": {"matchExpressions": [{"key": "pool", "operator": "Exists"}]},
                    "preferredNodeSelector": [{"weight": 1, "preference": {}}],
                    "tolerations": [{"operator": "Exists"}],
                },
                {"name": "elastic"},
            ],
            "scheduleStrategy": {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 295}},
        })
    }

    #[test]
    fn a_workload_is_spread_once_and_of_a_kind_that_is_known_or_listed() {
        const OTHERS: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/workloadspreads";
        let object = SPREAD.object("v1beta1", &good());
        let beside = |workload: &str| {
            let mut other = object.clone();
            other["metadata"]["name"] = json!("first");
            other["spec"]["targetRef"]["name"] = json!(workload);
            SPREAD.seeing(
                &[(OTHERS, json!({"items": [other]}))],
                "CREATE",
                &object,
                &Value::Null,
            )
        };
        assert_eq!(beside("other"), None);
        let message = beside("web").unwrap();
        assert!(
            message.contains("WorkloadSpread first is about the same workload"),
            "{message}"
        );
        let mut object = object.clone();
        object["spec"]["targetRef"] =
            json!({"apiVersion": "example.com/v1", "kind": "Broker", "name": "web"});
        let listed = json!(json!({"workloads": [{"Group": "example.com", "Kind": "Broker"}]}).to_string());
        for (setting, taken) in [(listed, true), (Value::Null, false)] {
            let seen = [(LISTED, setting), (OTHERS, Value::Null)];
            let message = SPREAD.seeing(&seen, "CREATE", &object, &Value::Null);
            assert_eq!(message.is_none(), taken, "{message:?}");
        }
    }

    #[test]
    fn each_broken_rule_is_refused_with_its_field() {
        let deadline = "spec.scheduleStrategy.adaptive.rescheduleCriticalSeconds: Invalid";
        SPREAD.each_is_refused(&[
            ("targetRef", Value::Null, "spec.targetRef: Required"),
            ("targetRef.name", json!(""), "spec.targetRef: Invalid"),
            (
                "targetRef.apiVersion",
                json!("apps/v1"),
                "spec.targetRef: Invalid",
            ),
            ("targetRef.kind", json!("Job"), "spec.targetRef: Invalid"),
            ("subsets", json!([]), "spec.subsets: Required"),
            ("subsets.1.name", json!(""), "spec.subsets[1].name: Required"),
            (
                "subsets.1.name",
                json!("reserved"),
                "spec.subsets[1].name: Duplicate",
            ),
            (
                "subsets.0.requiredNodeSelector.matchExpressions.0.operator",
                json!("In"),
                "spec.subsets[0].requiredNodeSelector.matchExpressions[0].values: Required",
            ),
            (
                "subsets.0.preferredNodeSelector.0.weight",
                json!(0),
                "spec.subsets[0].preferredNodeSelector[0].weight: Invalid",
            ),
            (
                "subsets.0.tolerations.0.operator",
                json!("Equal"),
                "spec.subsets[0].tolerations[0].operator: Invalid",
            ),
            (
                "subsets.0.maxReplicas",
                json!(-1),
                "spec.subsets[0].maxReplicas: Invalid",
            ),
            (
                "subsets.0.maxReplicas",
                json!("30"),
                "spec.subsets[0].maxReplicas: Invalid",
            ),
            (
                "subsets.0.maxReplicas",
                json!("many"),
                "spec.subsets[0].maxReplicas: Invalid",
            ),
            (
                "subsets.1.maxReplicas",
                json!("5%"),
                "spec.subsets[1].maxReplicas: Invalid",
            ),
            (
                "subsets.1.maxReplicas",
                json!(1),
                "spec.subsets[1].maxReplicas: Invalid",
            ),
            (
                "scheduleStrategy.type",
                json!("Loose"),
                "spec.scheduleStrategy.type: Unsupported",
            ),
            (
                "scheduleStrategy.type",
                json!("Fixed"),
                "spec.scheduleStrategy.type: Invalid",
            ),
            (
                "scheduleStrategy.adaptive.rescheduleCriticalSeconds",
                json!(-1),
                deadline,
            ),
            (
                "scheduleStrategy.adaptive.rescheduleCriticalSeconds",
                json!(296),
                deadline,
            ),
        ]);
    }

    #[test]
    fn percentages_leave_nothing_over() {
        let limits = |limits: &[Value], kind: &str| {
            let mut spec = good();
            put(&mut spec, "scheduleStrategy", &Value::Null);
            spec["targetRef"] = json!({"apiVersion": "apps/v1", "kind": kind, "name": "web"});
            let subsets = limits.iter().enumerate();
            spec["subsets"] = subsets
                .map(|(index, limit)| json!({"name": format!("s{index}"), "maxReplicas": limit}))
                .collect();
            SPREAD.refused("v1beta1", &spec)
        };
        let percent = |all: &[&str]| all.iter().map(|one| json!(one)).collect::<Vec<_>>();
        assert_eq!(limits(&percent(&["30%", "70%"]), "Deployment"), None);
        assert_eq!(limits(&[json!("30%"), Value::Null], "Deployment"), None);
        assert_eq!(limits(&[json!(3), json!(4)], "StatefulSet"), None);
        assert!(
            limits(&percent(&["30%", "71%"]), "Deployment")
                .unwrap()
                .contains("[1]")
        );
        assert!(
            limits(&percent(&["30%", "60%"]), "Deployment")
                .unwrap()
                .contains("[1]")
        );
        assert!(
            limits(&percent(&["100%"]), "StatefulSet")
                .unwrap()
                .contains("[0]")
        );
    }

    #[test]
    fn a_stored_limit_without_a_sign_holds_back_no_other_change() {
        let mut stored = good();
        put(&mut stored, "subsets.0.maxReplicas", &json!("30"));
        let mut renamed = stored.clone();
        put(&mut renamed, "subsets.1.name", &json!("other"));
        assert_eq!(SPREAD.update_refused(&stored, &renamed), None);
        put(&mut renamed, "subsets.0.maxReplicas", &json!("40"));
        assert!(SPREAD.update_refused(&stored, &renamed).is_some());
    }

    #[test]
    fn one_subset_may_be_however_patient() {
        let mut spec = good();
        spec["subsets"].as_array_mut().unwrap().pop();
        put(
            &mut spec,
            "scheduleStrategy.adaptive.rescheduleCriticalSeconds",
            &json!(i32::MAX),
        );
        assert_eq!(SPREAD.refused("v1beta1", &spec), None);
    }

    #[test]
    fn older_names_are_read_and_the_gate_is_heeded() {
        let mut spec = good();
        spec["subsets"][0] = json!({"name": "reserved", "requiredNodeSelectorTerm": {"matchFields": [{}]}});
        let message = SPREAD.refused("v1alpha1", &spec).unwrap();
        assert!(
            message.contains("spec.subsets[0].requiredNodeSelector.matchFields[0].key"),
            "{message}"
        );
        let mut off = SPREAD;
        off.options.workload_spread = false;
        let (code, message) = off
            .refusal("CREATE", &off.object("v1beta1", &good()), &Value::Null)
            .unwrap();
        assert_eq!(
            (code, message.as_str()),
            (403, "feature-gate WorkloadSpread is not enabled")
        );
    }

    #[test]
    fn the_workload_stays_but_for_its_version() {
        let mut other = good();
        put(
            &mut other,
            "targetRef.apiVersion",
            &json!("apps.kruise.io/v1alpha1"),
        );
        put(&mut other, "subsets.0.name", &json!("other"));
        assert_eq!(SPREAD.update_refused(&good(), &other), None);
        put(&mut other, "targetRef.name", &json!("other"));
        let message = SPREAD.update_refused(&good(), &other).unwrap();
        assert!(message.contains("spec.targetRef: Invalid"), "{message}");
    }
}
