//! PodUnavailableBudget: how many pods may be unavailable at a time, whatever makes them so.
//!
//! [`PodUnavailableBudget`] is the hub version, `v1beta1`. It is read from raw JSON with
//! [`PodUnavailableBudget::from_value`] and never written back: writes are patches of its status.

mod types;

use serde_json::Value;

use crate::convert::{
    Conversion, Rule,
    path::{get, set, take},
};
use crate::definition::{Kind, Scope, Version, columns};
use crate::names::POLICY_GROUP;
use crate::names::podunavailablebudget::{PROTECT_OPERATIONS, PROTECT_TOTAL_REPLICAS};
use crate::resource::ResourceId;
use crate::schema::shared::target_reference;
use crate::schema::{Object, at_least, int32, label_selector, list, map, one_of, time};

pub use types::{
    Entries, PodUnavailableBudget, PodUnavailableBudgetSpec, PodUnavailableBudgetStatus, TargetRef,
};

/// PodUnavailableBudget.
pub const KIND: Kind = Kind {
    group: POLICY_GROUP,
    kind: "PodUnavailableBudget",
    plural: "podunavailablebudgets",
    short_names: &["pub"],
    scope: Scope::Namespaced,
    about: "PodUnavailableBudget limits how many pods are out of service at a time, whoever takes them out.",
    versions,
    conversion: Conversion::Rules(&[
        Rule::Special {
            newer: from_annotations,
            older: to_annotations,
        },
        Rule::NewerOnly("spec.protectOperations"),
        Rule::NewerOnly("spec.protectTotalReplicas"),
        Rule::NewerOnly("spec.ignoredPodSelector"),
    ]),
};

/// The resource of the kind.
pub const RESOURCE: ResourceId = ResourceId::of(&KIND);

const OPERATIONS: &[&str] = &["DELETE", "UPDATE", "EVICT", "RESIZE"];
const BY_NAME: [&str; 3] = ["metadata", "annotations", PROTECT_OPERATIONS];
const TOTAL: [&str; 3] = ["metadata", "annotations", PROTECT_TOTAL_REPLICAS];

/// Annotations that cannot be read stay: a conversion that fails would make whole lists unreadable.
fn from_annotations(object: &mut Value) {
    if !object.get("spec").is_some_and(Value::is_object) {
        return;
    }
    let text = |path| {
        get(object, path)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (operations, total) = (text(&BY_NAME), text(&TOTAL));
    let named = operations
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    let named: Vec<&str> = named.collect();
    if !named.is_empty() && named.iter().all(|name| OPERATIONS.contains(name)) {
        set(object, &["spec", "protectOperations"], named.into());
    }
    if let Ok(total) = total.parse::<i32>() {
        set(object, &["spec", "protectTotalReplicas"], total.into());
    }
}

fn to_annotations(object: &mut Value) {
    if !object.get("spec").is_some_and(Value::is_object) {
        return;
    }
    let operations = get(object, &["spec", "protectOperations"]).and_then(Value::as_array);
    let named = operations.into_iter().flatten().filter_map(Value::as_str);
    let named: Vec<&str> = named.filter(|name| !name.is_empty()).collect();
    let operations = named.join(",");
    let total = get(object, &["spec", "protectTotalReplicas"]).and_then(Value::as_i64);
    for (place, text) in [
        (&BY_NAME, Some(operations).filter(|text| !text.is_empty())),
        (&TOTAL, total.map(|total| total.to_string())),
    ] {
        match text {
            Some(text) => set(object, place, text.into()),
            None => drop(take(object, place)),
        }
    }
}

fn versions() -> Vec<Version> {
    let version = |name, storage, spec: Object| {
        let pods = |help: &str| map(help, time("Time when it was allowed."));
        let status =
            Object::new("What was last seen of the pods; written by the controller and the webhook.")
                .int64(
                    "observedGeneration",
                    "Generation of the specification that the numbers belong to.",
                )
                .int32(
                    "unavailableAllowed",
                    "Number of pods that may go out of service now.",
                )
                .int32(
                    "currentAvailable",
                    "Number of pods that were in service when last seen.",
                )
                .int32(
                    "desiredAvailable",
                    "Number of pods that must stay in service; 0 switches the budget off.",
                )
                .int32(
                    "totalReplicas",
                    "Number of pods that should exist; -1 while unknown.",
                )
                .with(
                    "disruptedPods",
                    pods("Pods whose deletion was allowed and is not observed yet, by name."),
                )
                .with(
                    "unavailablePods",
                    pods("Pods whose update was allowed and is not observed yet, by name."),
                )
                .required(&[
                    "unavailableAllowed",
                    "currentAvailable",
                    "desiredAvailable",
                    "totalReplicas",
                ]);
        Version {
            name,
            storage,
            spec: spec.into(),
            status: status.into(),
            scale: false,
            columns: vec![
                columns::count("Allowed", ".status.unavailableAllowed"),
                columns::count("Current", ".status.currentAvailable"),
                columns::count("Desired", ".status.desiredAvailable"),
                columns::count("Total", ".status.totalReplicas"),
            ],
        }
    };
    let operation = one_of(crate::schema::text_items(), OPERATIONS);
    let newer = spec()
        .with(
            "ignoredPodSelector",
            label_selector("Labels of pods that may always go out of service. Default: none."),
        )
        .with(
            "protectOperations",
            list(
                "What is limited: DELETE, UPDATE, EVICT, RESIZE. Default: all but RESIZE.",
                operation,
            ),
        )
        .with(
            "protectTotalReplicas",
            at_least(
                int32(
                    "Number of pods that should exist, one or more. Default: the replicas of the workload.",
                ),
                1,
            ),
        );
    vec![
        version("v1alpha1", false, spec()),
        version("v1beta1", true, newer),
    ]
}

fn spec() -> Object {
    Object::new("Which pods are protected, and how many of them may be out of service.")
        .int_or_string(
            "maxUnavailable",
            "Most pods, or percent, rounded up, out of service; excludes minAvailable. Default: none.",
        )
        .int_or_string(
            "minAvailable",
            "Least pods, or percent, rounded up, in service; excludes maxUnavailable. Default: none.",
        )
        .with(
            "selector",
            label_selector(
                "Labels of the protected pods in this namespace; excludes targetRef. Default: none.",
            ),
        )
        .with(
            "targetRef",
            target_reference("Workload whose pods are protected; excludes selector. Default: none."),
        )
}
