//! WorkloadSpread: new pods of a workload are spread over subsets of nodes.
//!
//! [`WorkloadSpread`] is the hub version, `v1beta1`. It is read from raw JSON with [`WorkloadSpread::from_value`]
//! and never written back: writes are patches of its status.

mod types;

use serde_json::Value;

use crate::convert::{Conversion, Rule, path::each};
use crate::definition::{Kind, Scope, Version, columns};
use crate::names::APPS_GROUP;
use crate::resource::ResourceId;
use crate::schema::shared::{
    condition, node_selector_term, standard_conditions, target_reference, tolerations,
};
use crate::schema::{Object, anything, label_selector, list, map, one_of, string, time, with};

pub use types::{
    Adaptive, Matched, ScheduleStrategy, Subset, SubsetCondition, SubsetStatus, TargetFilter, WorkloadSpread,
    WorkloadSpreadSpec, WorkloadSpreadStatus,
};

/// WorkloadSpread.
pub const KIND: Kind = Kind {
    group: APPS_GROUP,
    kind: "WorkloadSpread",
    plural: "workloadspreads",
    short_names: &["ws"],
    scope: Scope::Namespaced,
    about: "WorkloadSpread spreads the new pods of a workload over subsets of nodes.",
    versions,
    conversion: Conversion::Rules(&[
        Rule::Renamed {
            older: "spec.subsets[].requiredNodeSelectorTerm",
            newer: "requiredNodeSelector",
        },
        Rule::Renamed {
            older: "spec.subsets[].preferredNodeSelectorTerms",
            newer: "preferredNodeSelector",
        },
        Rule::NewerOnly("status.subsetStatuses[].conditions[].observedGeneration"),
        Rule::NewerOnly("status.versionedSubsetStatuses{}[].conditions[].observedGeneration"),
        Rule::Special {
            newer: complete_conditions,
            older: |_| {},
        },
    ]),
};

/// The resource of the kind.
pub const RESOURCE: ResourceId = ResourceId::of(&KIND);

/// In the newer version a condition must have a reason and a message.
fn complete_conditions(object: &mut Value) {
    for place in [
        "status.subsetStatuses[].conditions[].type",
        "status.versionedSubsetStatuses{}[].conditions[].type",
    ] {
        each(object, place, &mut |condition, _| {
            for (name, filler) in [("reason", "Unknown"), ("message", "")] {
                let value = condition.get(name).and_then(Value::as_str).unwrap_or_default();
                if value.is_empty() {
                    condition.insert(name.to_owned(), filler.into());
                }
            }
        });
    }
}

fn versions() -> Vec<Version> {
    let subset = || {
        condition(
            "One aspect of the subset's state: whether pods can be scheduled to it.",
            "Schedulable",
        )
        .required(&["type", "status"])
    };
    let older = list(
        "Conditions of the subset, each type at most once.",
        subset().into(),
    );
    let newer = standard_conditions("Conditions of the subset, each type at most once.", "Schedulable");
    vec![
        version(
            "v1alpha1",
            false,
            ["requiredNodeSelectorTerm", "preferredNodeSelectorTerms"],
            &older,
        ),
        version(
            "v1beta1",
            true,
            ["requiredNodeSelector", "preferredNodeSelector"],
            &newer,
        ),
    ]
}

fn version(name: &'static str, storage: bool, names: [&'static str; 2], conditions: &Value) -> Version {
    let subset_status = || {
        let pods = |help: &str| map(help, time("Time when it was allowed."));
        Object::new("How many pods of the workload one subset has.")
            .text("name", "Name of the subset, as in the specification.")
            .int32("replicas", "Number of active pods that are in the subset.")
            .int32(
                "missingReplicas",
                "Number of pods that the subset still wants; -1 without a limit.",
            )
            .with(
                "creatingPods",
                pods("Pods that have been allowed and not been seen yet, by name."),
            )
            .with(
                "deletingPods",
                pods("Pods whose deletion was allowed and is not observed yet, by name."),
            )
            .with("conditions", conditions.clone())
            .required(&["missingReplicas", "name", "replicas"])
    };
    let status = Object::new("How the pods are spread; written by the controller and the webhook.")
        .int64(
            "observedGeneration",
            "Generation of the specification that the numbers belong to.",
        )
        .list(
            "subsetStatuses",
            "States of the subsets, in their order, over all versions of pods.",
            subset_status(),
        )
        .with(
            "versionedSubsetStatuses",
            map(
                "States of the subsets for each version of the pods, by its hash.",
                list("States of the subsets, in their order.", subset_status().into()),
            ),
        );
    Version {
        name,
        storage,
        spec: spec(subset(names)).into(),
        status: status.into(),
        scale: false,
        columns: vec![
            columns::text("WorkloadName", ".spec.targetRef.name"),
            columns::text("WorkloadKind", ".spec.targetRef.kind"),
            with(
                columns::text("Adaptive", ".spec.scheduleStrategy.type[?(@ == \"Adaptive\")]"),
                "type",
                "boolean".into(),
            ),
            columns::age("Age"),
        ],
    }
}

fn subset([required, preferred]: [&'static str; 2]) -> Object {
    let term = Object::new("Nodes that pods of the subset are preferred to be on, and how much.")
        .int32(
            "weight",
            "Weight of matching nodes, 1 to 100; the sum of all decides.",
        )
        .with(
            "preference",
            node_selector_term("Labels and fields of nodes that are preferred."),
        )
        .required(&["preference", "weight"]);
    Object::new("One subset: how many pods, on which nodes, and what is patched into them.")
        .text("name", "Name of the subset, not empty, unique in the list.")
        .int_or_string(
            "maxReplicas",
            "Most pods, or percent of replicas, in the subset. Default: no limit.",
        )
        .with(
            "patch",
            anything("Strategic merge patch on each pod of the subset, stored as written. Default: none."),
        )
        .list(
            preferred,
            "Nodes that pods of the subset are preferred to be on. Default: none.",
            term,
        )
        .with(
            required,
            node_selector_term("Nodes that pods of the subset must be on. Default: any node."),
        )
        .with(
            "tolerations",
            tolerations("Tolerations added to pods of the subset. Default: none."),
        )
        .required(&["name"])
}

fn spec(subset: Object) -> Object {
    let adaptive =
        Object::new("Parameters of Adaptive; all fields are optional. Default: those of its fields.")
            .flag(
                "disableSimulationSchedule",
                "Kept for compatibility; nothing is simulated. Default: false.",
            )
            .int32(
                "rescheduleCriticalSeconds",
                "Seconds a pod may be unschedulable before it is moved to another subset. Default: never.",
            );
    let strategy = Object::new("What happens to pods that a subset cannot take. Default: Fixed.")
        .with("adaptive", adaptive)
        .with(
            "type",
            one_of(
                string("Fixed: pods stay in their subset. Adaptive: pods that cannot be scheduled move. Default: Fixed."),
                &["Adaptive", "Fixed", ""],
            ),
        );
    let filter =
        Object::new("Which pods of the workload count, and which field has their number. Default: all.")
            .with(
                "selector",
                label_selector("Labels of the only pods that are spread. Default: every pod."),
            )
            .texts(
                "replicasPathList",
                "Paths to numbers in the workload that are added up for its replicas. Default: none.",
            );
    Object::new("Whose pods are spread, over which subsets, and how strictly.")
        .with("scheduleStrategy", strategy)
        .list(
            "subsets",
            "Subsets, filled from the first and emptied from the last.",
            subset,
        )
        .with("targetFilter", filter)
        .with(
            "targetRef",
            target_reference("Workload whose pods are spread, in this namespace; cannot change.")
                .required(&["apiVersion", "kind", "name"]),
        )
        .required(&["subsets", "targetRef"])
}
