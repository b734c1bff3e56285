//! The definition, and the conversion of its versions.

use serde_json::{Value, json};

use crate::convert::{
    Conversion, Rule,
    path::{get, set, take},
};
use crate::definition::{Kind, Scope, Version, columns};
use crate::names::APPS_GROUP;
use crate::names::daemonset::PROGRESSIVE_CREATE_POD;
use crate::schema::shared::{condition, lifecycle, pod_template};
use crate::schema::{Object, label_selector};

/// DaemonSet of `apps.kruise.io`.
pub const KIND: Kind = Kind {
    group: APPS_GROUP,
    kind: "DaemonSet",
    plural: "daemonsets",
    short_names: &["daemon", "ads"],
    scope: Scope::Namespaced,
    about: "DaemonSet keeps one pod of a template on each node, and changes it in place where it can.",
    versions,
    conversion: Conversion::Rules(&[
        // Undone last: the words of the older version say what the field does.
        Rule::NewerOnly("spec.scaleStrategy"),
        Rule::Special {
            newer: from_older_words,
            older: to_older_words,
        },
        Rule::Renamed {
            older: "status.daemonSetHash",
            newer: "updateRevision",
        },
    ]),
};

const TYPE: [&str; 4] = ["spec", "updateStrategy", "rollingUpdate", "rollingUpdateType"];
const SURGE: [&str; 4] = ["spec", "updateStrategy", "rollingUpdate", "maxSurge"];
const UNAVAILABLE: [&str; 4] = ["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"];
const PARTITIONED: [&str; 3] = ["spec", "scaleStrategy", "partitionedScaling"];
const ANNOTATION: [&str; 3] = ["metadata", "annotations", PROGRESSIVE_CREATE_POD];

/// `Surging` is `Standard` with a surge, of 1 unless it says otherwise. The annotation is the older form of the
/// field, and stays.
fn from_older_words(object: &mut Value) {
    if get(object, &TYPE).is_some_and(|kind| kind == "Surging") {
        set(object, &TYPE, "Standard".into());
        let given = |path| get(object, path).filter(|value| !value.is_null());
        if given(&SURGE).is_none() && given(&UNAVAILABLE).is_none_or(|limit| limit == 0) {
            set(object, &SURGE, 1.into());
            set(object, &UNAVAILABLE, 0.into());
        }
    }
    let has_spec = object.get("spec").is_some_and(Value::is_object);
    if has_spec && get(object, &ANNOTATION).is_some_and(|value| value == "true") {
        set(object, &PARTITIONED, true.into());
    }
}

/// An annotation that says otherwise than the field would switch it on again with the next write of the older version.
fn to_older_words(object: &mut Value) {
    if get(object, &PARTITIONED) == Some(&json!(true)) {
        set(object, &ANNOTATION, "true".into());
    } else if get(object, &ANNOTATION).is_some_and(|value| value == "true") {
        take(object, &ANNOTATION);
    }
}

fn versions() -> Vec<Version> {
    let version = |name, storage, spec: Object, status: Object| Version {
        name,
        storage,
        spec: spec.into(),
        status: status.into(),
        scale: false,
        columns: vec![
            columns::count("DESIRED", ".status.desiredNumberScheduled"),
            columns::count("CURRENT", ".status.currentNumberScheduled"),
            columns::count("READY", ".status.numberReady"),
            columns::count("UP-TO-DATE", ".status.updatedNumberScheduled"),
            columns::count("AVAILABLE", ".status.numberAvailable"),
            columns::age("AGE"),
            columns::wide("CONTAINERS", ".spec.template.spec.containers[*].name"),
            columns::wide("IMAGES", ".spec.template.spec.containers[*].image"),
        ],
    };
    let scale =
        Object::new("How pods are created on nodes that have none; optional. Default: those of its fields.")
            .flag(
                "partitionedScaling",
                "Create pods in parts, too, according to the partition. Default: false.",
            );
    let newer = status().text("updateRevision", "Hash of the revision that is being rolled out.");
    let older = status().text("daemonSetHash", "Hash of the revision that is being rolled out.");
    vec![
        version("v1alpha1", false, spec(), older),
        version("v1beta1", true, spec().with("scaleStrategy", scale), newer),
    ]
}

fn spec() -> Object {
    let rolling = Object::new("Parameters of RollingUpdate: how many pods change, and on which nodes. Default: those of its fields.")
        .text(
            "rollingUpdateType",
            "Standard recreates pods, InPlaceIfPossible changes them in place if it can. Default: Standard.",
        )
        .int_or_string(
            "maxUnavailable",
            "Most nodes, or percent of them, without an available pod. Default: 1.",
        )
        .int_or_string(
            "maxSurge",
            "Most nodes, or percent of them, with an old and a new pod. Default: 0.",
        )
        .int_or_string(
            "partition",
            "Number of pods, or percent of nodes, kept on old revisions. Default: 0.",
        )
        .flag(
            "paused",
            "Stop updating pods; new nodes get theirs nevertheless. Default: false.",
        )
        .with(
            "selector",
            label_selector("Labels of the only nodes whose pods are updated. Default: every node."),
        );
    let update = Object::new(
        "How pods are updated to a changed template; all fields are optional. Default: those of its fields.",
    )
    .text(
        "type",
        "RollingUpdate updates pods, OnDelete waits until pods are deleted. Default: RollingUpdate.",
    )
    .with("rollingUpdate", rolling);
    Object::new("Desired state: which pods on which nodes, and how they are updated.")
        .int_or_string(
            "burstReplicas",
            "Most pods, or percent of nodes, created or deleted at a time. Default: 250.",
        )
        .with("lifecycle", lifecycle())
        .int32(
            "minReadySeconds",
            "Seconds a pod must be Ready before it counts as available. Default: 0.",
        )
        .int32(
            "revisionHistoryLimit",
            "Number of unused revisions kept for rollbacks. Default: 10.",
        )
        .with(
            "selector",
            label_selector(
                "Labels of the pods that belong to this object; must match the template; cannot change.",
            ),
        )
        .with("template", pod_template())
        .with("updateStrategy", update)
        .required(&["selector", "template"])
}

fn status() -> Object {
    let condition = condition(
        "One aspect of the state; kept for compatibility.",
        "as clients know it",
    )
    .required(&["type", "status"]);
    Object::new("What was last seen of nodes and their pods; written by the controller.")
        .int64(
            "observedGeneration",
            "Generation of the specification that the numbers belong to.",
        )
        .int32(
            "desiredNumberScheduled",
            "Number of nodes that should have a pod of this DaemonSet.",
        )
        .int32(
            "currentNumberScheduled",
            "Number of these nodes that have at least one pod.",
        )
        .int32(
            "numberMisscheduled",
            "Number of other nodes that have a pod nevertheless.",
        )
        .int32(
            "numberReady",
            "Number of nodes whose pod is Ready, of whatever revision.",
        )
        .int32(
            "updatedNumberScheduled",
            "Number of nodes whose pod is of the newest revision.",
        )
        .int32(
            "numberAvailable",
            "Number of nodes whose pod is available. Default: 0.",
        )
        .int32(
            "numberUnavailable",
            "Number of nodes that lack an available pod. Default: 0.",
        )
        .int32(
            "collisionCount",
            "Number of collisions of revision names so far; part of new names.",
        )
        .list(
            "conditions",
            "Conditions of the object, each type at most once.",
            condition,
        )
        .required(&[
            "currentNumberScheduled",
            "desiredNumberScheduled",
            "numberMisscheduled",
            "numberReady",
            "updatedNumberScheduled",
        ])
}
