//! The definition of CloneSet. Descriptions are what `kubectl explain` shows.

use serde_json::Value;

use super::convert::{to_v1alpha1, to_v1beta1};
use crate::convert::{Conversion, Direction};
use crate::definition::{Kind, Scope, Version, columns};
use crate::names::APPS_GROUP;
use crate::schema::shared::{
    claim_templates, condition, in_place_strategy, lifecycle, pod_template, priority_strategy,
    scatter_strategy,
};
use crate::schema::{Object, boolean, defaulted, label_selector};

/// CloneSet.
pub const KIND: Kind = Kind {
    group: APPS_GROUP,
    kind: "CloneSet",
    plural: "clonesets",
    short_names: &["clone"],
    scope: Scope::Namespaced,
    about: "CloneSet keeps a number of pods of one template running, and updates them in place if possible.",
    versions,
    conversion: Conversion::Own(|object, direction| {
        // The versions are known to be served: there is nothing else that these could refuse.
        let _ = match direction {
            Direction::Newer => to_v1beta1(object),
            Direction::Older => to_v1alpha1(object),
        };
    }),
};

/// The definition. `namespace` is where the conversion webhook's service lives.
pub fn manifest(namespace: &str) -> Value {
    KIND.manifest(namespace)
}

fn versions() -> Vec<Version> {
    let version = |name, storage, spec: Object| Version {
        name,
        storage,
        spec: spec.into(),
        status: status().into(),
        scale: true,
        columns: vec![
            columns::count("DESIRED", ".spec.replicas"),
            columns::count("UPDATED", ".status.updatedReplicas"),
            columns::count("UPDATED_READY", ".status.updatedReadyReplicas"),
            columns::count("UPDATED_AVAILABLE", ".status.updatedAvailableReplicas"),
            columns::count("READY", ".status.readyReplicas"),
            columns::count("TOTAL", ".status.replicas"),
            columns::age("AGE"),
            columns::wide("CONTAINERS", ".spec.template.spec.containers[*].name"),
            columns::wide("IMAGES", ".spec.template.spec.containers[*].image"),
            columns::wide("SELECTOR", ".status.labelSelector"),
        ],
    };
    vec![
        version("v1alpha1", false, v1alpha1()),
        version("v1beta1", true, v1beta1()),
    ]
}

/// Desired state in the newer version; templates of other kinds have it, too.
pub fn v1beta1() -> Object {
    let scale = Object::new("")
        .with(
            "enablePVCReuse",
            defaulted(
                boolean("Give instance ids and claims of deleted pods to new pods. Default: false."),
                false,
            ),
        )
        .flag(
            "excludePreparingDelete",
            "Do not count pods in state PreparingDelete as replicas. Default: false.",
        );
    let rolling = Object::new("Parameters of RollingUpdate: how many pods are updated, and in which order. Default: those of its fields.")
        .and(rolling_update())
        .text(
            "podUpdatePolicy",
            "How a pod is updated: ReCreate, InPlaceIfPossible or InPlaceOnly. Default: ReCreate.",
        );
    let update = Object::new("")
        .text(
            "type",
            "RollingUpdate updates pods, OnDelete waits until pods are deleted. Default: RollingUpdate.",
        )
        .with("rollingUpdate", rolling);
    spec(scale, update)
}

fn v1alpha1() -> Object {
    let scale = Object::new("").flag(
        "disablePVCReuse",
        "Do not give instance ids and claims of deleted pods to new pods. Default: false.",
    );
    let update = rolling_update().text(
        "type",
        "How pods change: ReCreate, InPlaceIfPossible, InPlaceOnly or OnDelete. Default: ReCreate.",
    );
    spec(scale, update)
}

fn spec(scale: Object, update: Object) -> Object {
    let scale =
        Object::new("How pods are added and removed; all fields are optional. Default: those of its fields.")
            .int_or_string(
                "maxUnavailable",
                "Most pods, or percent of replicas, unavailable while pods are added. Default: no limit.",
            )
            .texts(
                "podsToDelete",
                "Names of pods to delete before all others. Default: none.",
            )
            .and(scale);
    let update = Object::new(
        "How pods are updated to a changed template; all fields are optional. Default: those of its fields.",
    )
    .and(update);
    Object::new("Desired state: how many pods, of which template, and how they are updated.")
        .int32("replicas", "Number of desired pods, zero or more. Default: 1.")
        .with(
            "selector",
            label_selector(
                "Labels of the pods that belong to this object; must match the template; cannot change.",
            ),
        )
        .with("template", pod_template())
        .with("volumeClaimTemplates", claim_templates())
        .with("scaleStrategy", scale)
        .with("updateStrategy", update)
        .int32(
            "revisionHistoryLimit",
            "Number of unused revisions kept for rollbacks. Default: 10.",
        )
        .int32(
            "minReadySeconds",
            "Seconds a pod must be Ready before it counts as available. Default: 0.",
        )
        .int32(
            "progressDeadlineSeconds",
            "Seconds without progress before condition Progressing turns False. Default: never.",
        )
        .with("lifecycle", lifecycle())
        .required(&["selector", "template"])
}

fn rolling_update() -> Object {
    Object::new("")
        .int_or_string(
            "partition",
            "Number of pods, or percent of replicas, kept on old revisions. Default: 0.",
        )
        .int_or_string(
            "maxUnavailable",
            "Most pods, or percent of replicas, unavailable during an update. Default: 20%.",
        )
        .int_or_string(
            "maxSurge",
            "Most pods, or percent of replicas, above replicas during an update. Default: 0.",
        )
        .flag(
            "paused",
            "Stop updating pods; adding and removing pods continues. Default: false.",
        )
        .with("priorityStrategy", priority_strategy())
        .with("scatterStrategy", scatter_strategy())
        .with("inPlaceUpdateStrategy", in_place_strategy())
}

fn status() -> Object {
    let condition = condition(
        "One aspect of the state, such as Progressing, FailedScale or FailedUpdate.",
        "Progressing, FailedScale or FailedUpdate",
    )
    .time(
        "lastUpdateTime",
        "Time when the condition was last confirmed or changed.",
    )
    .required(&["type", "status"]);
    Object::new("Observed state of the pods; written by the controller.")
        .int64(
            "observedGeneration",
            "Generation of the specification that the numbers belong to.",
        )
        .int32(
            "replicas",
            "Number of pods that neither ended nor are being deleted.",
        )
        .int32(
            "readyReplicas",
            "Number of pods that are Ready and not being updated in place.",
        )
        .int32(
            "availableReplicas",
            "Number of pods that are Ready for at least minReadySeconds.",
        )
        .int32(
            "updatedReplicas",
            "Number of pods of the update revision, ready or not.",
        )
        .int32(
            "updatedReadyReplicas",
            "Number of Ready pods of the update revision.",
        )
        .int32(
            "updatedAvailableReplicas",
            "Number of available pods of the update revision.",
        )
        .int32(
            "expectedUpdatedReplicas",
            "Number of pods that the update has to reach: replicas less partition.",
        )
        .text("updateRevision", "Name of the revision that is being rolled out.")
        .text(
            "currentRevision",
            "Name of the revision that was last rolled out in full.",
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
        .text(
            "labelSelector",
            "The selector as text, for the scale subresource and autoscalers.",
        )
        .required(&[
            "replicas",
            "readyReplicas",
            "availableReplicas",
            "updatedReplicas",
            "updatedReadyReplicas",
        ])
}
