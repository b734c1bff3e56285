//! The definition of UnitedDeployment.

use serde_json::Value;

use super::convert::RULES;
use crate::convert::Conversion;
use crate::definition::{Kind, Scope, Version, columns};
use crate::names::APPS_GROUP;
use crate::schema::shared::{condition, node_selector_term, tolerations};
use crate::schema::{Object, anything, int32, label_selector, map, one_of, string, with};
use crate::{cloneset, statefulset};

/// UnitedDeployment.
pub const KIND: Kind = Kind {
    group: APPS_GROUP,
    kind: "UnitedDeployment",
    plural: "uniteddeployments",
    short_names: &["ud"],
    scope: Scope::Namespaced,
    about: "UnitedDeployment keeps one workload of a template for each subset of nodes.",
    versions,
    conversion: Conversion::Rules(RULES),
};

fn versions() -> Vec<Version> {
    let version = |name, storage, clone_set: Value, status: Object| Version {
        name,
        storage,
        spec: spec(clone_set).into(),
        status: status.into(),
        scale: true,
        columns: vec![
            columns::count("DESIRED", ".spec.replicas"),
            columns::count("CURRENT", ".status.replicas"),
            columns::count("UPDATED", ".status.updatedReplicas"),
            columns::count("READY", ".status.readyReplicas"),
            columns::age("AGE"),
        ],
    };
    let newer = status().text(
        "updatedRevision",
        "Name of the revision that is being rolled out.",
    );
    vec![
        version("v1alpha1", false, of_either_shape(), status().and(older_status())),
        version("v1beta1", true, cloneset::crd::v1beta1().into(), newer),
    ]
}

/// Until 1.9 templates had the shape of `v1alpha1`, later that of `v1beta1`: what is stored may have either.
fn of_either_shape() -> Value {
    let mut spec: Value = cloneset::crd::v1beta1().into();
    for name in ["scaleStrategy", "updateStrategy"] {
        if let Some(strategy) = spec.pointer_mut(&format!("/properties/{name}")) {
            *strategy = with(
                strategy.take(),
                "x-kubernetes-preserve-unknown-fields",
                true.into(),
            );
        }
    }
    spec
}

fn older_status() -> Object {
    let update = Object::new("How far each subset has been updated, by its name.")
        .text(
            "updatedRevision",
            "Name of the revision that is being rolled out.",
        )
        .with(
            "currentPartitions",
            map(
                "Number of pods that each subset keeps on old revisions, by its name.",
                int32("Number of pods kept on old revisions."),
            ),
        );
    Object::new("").with("updateStatus", update).with(
        "subsetReplicas",
        map(
            "Number of pods that each subset should have, by its name.",
            int32("Number of pods that the subset should have."),
        ),
    )
}

fn status() -> Object {
    let aspect = |help, types| condition(help, types);
    let subset = Object::new("How many pods one subset has, and should have.")
        .text("name", "Name of the subset, as in the specification.")
        .int32("replicas", "Number of pods that the subset should have.")
        .int32("readyReplicas", "Number of pods of the subset that are Ready.")
        .int32("partition", "Number of pods of the subset kept on old revisions.")
        .int32(
            "reservedPods",
            "Number of pods kept although they cannot be scheduled. Default: 0.",
        )
        .list(
            "conditions",
            "Conditions of the subset, each type at most once.",
            aspect(
                "One aspect of the subset's state: whether pods can be scheduled to it.",
                "Schedulable",
            )
            .required(&["type", "status"]),
        );
    Object::new("What was last seen of the subsets; written by the controller.")
        .int64(
            "observedGeneration",
            "Generation of the specification that the numbers belong to.",
        )
        .int32(
            "replicas",
            "Number of pods of all subsets, less the reserved ones.",
        )
        .int32("readyReplicas", "Number of pods of all subsets that are Ready.")
        .int32(
            "updatedReplicas",
            "Number of pods of all subsets that are of the newest revision.",
        )
        .int32(
            "updatedReadyReplicas",
            "Number of pods of the newest revision that are Ready.",
        )
        .int32(
            "reservedPods",
            "Number of pods kept although they cannot be scheduled. Default: 0.",
        )
        .int32(
            "collisionCount",
            "Number of collisions of revision names so far; part of new names.",
        )
        .text(
            "currentRevision",
            "Name of the revision that was last rolled out in full.",
        )
        .text(
            "labelSelector",
            "The selector as text, for the scale subresource and autoscalers.",
        )
        .list(
            "subsetStatuses",
            "States of the subsets, in the order of the topology.",
            subset,
        )
        .list(
            "conditions",
            "Conditions of the whole, each type at most once.",
            aspect(
                "One aspect of the state of the whole, such as SubsetProvisioned.",
                "SubsetProvisioned, SubsetUpdated and others",
            ),
        )
        .required(&["currentRevision", "replicas", "updatedReplicas"])
}

fn spec(clone_set: Value) -> Object {
    let manual = Object::new("How many pods each subset keeps on old revisions. Default: none.").with(
        "partitions",
        map(
            "Number of pods that each subset keeps on old revisions, by its name. Default: 0.",
            int32("Number of pods kept on old revisions."),
        ),
    );
    let update = Object::new(
        "How pods are updated to a changed template; all fields are optional. Default: those of its fields.",
    )
    .with("manualUpdate", manual)
    .with(
        "type",
        one_of(
            string("Manual: subsets are updated according to their partitions. Default: Manual."),
            &["Manual", ""],
        ),
    );
    Object::new("Desired state: how many pods, in which workloads, on which nodes.")
        .int32(
            "replicas",
            "Number of desired pods in all subsets together. Default: 1.",
        )
        .int32(
            "revisionHistoryLimit",
            "Number of unused revisions kept for rollbacks. Default: 10.",
        )
        .with(
            "selector",
            label_selector("Labels of the pods that belong to this object; must match the template."),
        )
        .with("template", template(clone_set))
        .with("topology", topology())
        .with("updateStrategy", update)
        .required(&["selector"])
}

fn template(clone_set: Value) -> Object {
    let of = |help, spec: Value| {
        Object::new(help)
            .with(
                "metadata",
                anything("Labels and annotations of the created workloads. Default: none."),
            )
            .with("spec", spec)
            .required(&["spec"])
    };
    Object::new("Workload that is created for each subset; exactly one template must be set. No default.")
        .with(
            "statefulSetTemplate",
            of(
                "Template of a StatefulSet of apps; excludes the other templates. Default: none.",
                anything("Specification of a StatefulSet of apps/v1, stored as written."),
            ),
        )
        .with(
            "advancedStatefulSetTemplate",
            of(
                "Template of a StatefulSet of apps.kruise.io; excludes the other templates. Default: none.",
                statefulset::v1beta1().into(),
            ),
        )
        .with(
            "cloneSetTemplate",
            of(
                "Template of a CloneSet; excludes the other templates. Default: none.",
                clone_set,
            ),
        )
        .with(
            "deploymentTemplate",
            of(
                "Template of a Deployment of apps; excludes the other templates. Default: none.",
                anything("Specification of a Deployment of apps/v1, stored as written."),
            ),
        )
}

fn topology() -> Object {
    let adaptive =
        Object::new("Parameters of Adaptive; all fields are optional. Default: those of its fields.")
            .int32(
                "rescheduleCriticalSeconds",
                "Seconds a pod may be unschedulable before others take its place. Default: 30.",
            )
            .flag(
                "reserveUnschedulablePods",
                "Keep unschedulable pods and create others in addition. Default: false.",
            )
            .int32(
                "unschedulableDuration",
                "Seconds before a subset that could not take pods is tried again. Default: 300.",
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
    let subset = Object::new("One subset: how many pods, on which nodes, and what is patched into them.")
        .text("name", "Name of the subset, a DNS label, unique in the list.")
        .int_or_string(
            "replicas",
            "Number of pods, or percent of replicas, in the subset. Default: its share.",
        )
        .int_or_string(
            "minReplicas",
            "Least pods, or percent of replicas, filled first. Default: 0.",
        )
        .int_or_string(
            "maxReplicas",
            "Most pods, or percent of replicas, in the subset. Default: no limit.",
        )
        .with(
            "nodeSelectorTerm",
            node_selector_term("Nodes that pods of the subset must be on; cannot change. Default: any node."),
        )
        .with(
            "patch",
            anything("Strategic merge patch on the subset's pod template, stored as written. Default: none."),
        )
        .with(
            "tolerations",
            tolerations("Tolerations added to pods of the subset. Default: none."),
        )
        .required(&["name"]);
    Object::new("Subsets of nodes, and how pods are divided among them. Default: no subsets.")
        .with("scheduleStrategy", strategy)
        .list(
            "subsets",
            "Subsets, filled in their order. Default: none.",
            subset,
        )
}
