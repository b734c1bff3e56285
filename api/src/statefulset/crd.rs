//! The definition of StatefulSet, in both versions.

use serde_json::Value;

use crate::convert::{Conversion, Rule};
use crate::definition::{Kind, Scope, Version, columns};
use crate::names::APPS_GROUP;
use crate::schema::shared::{
    claim_templates, condition, in_place_strategy, lifecycle, pod_template, priority_strategy,
};
use crate::schema::{Object, int_or_string, label_selector, list};

/// StatefulSet of `apps.kruise.io`.
pub const KIND: Kind = Kind {
    group: APPS_GROUP,
    kind: "StatefulSet",
    plural: "statefulsets",
    short_names: &["sts", "asts"],
    scope: Scope::Namespaced,
    about: "StatefulSet keeps pods with names and claims of their own, and changes them in place where it can.",
    versions,
    conversion: Conversion::Rules(&[
        Rule::NewerOnly("spec.lifecycle"),
        Rule::NewerOnly("spec.ordinals"),
        Rule::NewerOnly("spec.persistentVolumeClaimRetentionPolicy"),
        Rule::NewerOnly("spec.reserveOrdinals"),
        Rule::NewerOnly("spec.scaleStrategy"),
        Rule::NewerOnly("spec.volumeClaimUpdateStrategy"),
        Rule::NewerOnly("status.updatedAvailableReplicas"),
        Rule::NewerOnly("status.updatedReadyReplicas"),
        Rule::NewerOnly("status.volumeClaims"),
    ]),
};

fn versions() -> Vec<Version> {
    let version = |name, storage, spec: Object, status: Object| Version {
        name,
        storage,
        spec: spec.into(),
        status: status.into(),
        scale: true,
        columns: vec![
            columns::count("DESIRED", ".spec.replicas"),
            columns::count("CURRENT", ".status.replicas"),
            columns::count("UPDATED", ".status.updatedReplicas"),
            columns::count("READY", ".status.readyReplicas"),
            columns::age("AGE"),
            columns::wide("CONTAINERS", ".spec.template.spec.containers[*].name"),
            columns::wide("IMAGES", ".spec.template.spec.containers[*].image"),
        ],
    };
    vec![
        version("v1alpha1", false, spec(), status()),
        version("v1beta1", true, v1beta1(), status().and(newer_status())),
    ]
}

/// Desired state in the newer version; templates of other kinds have it, too.
pub fn v1beta1() -> Object {
    let claims = Object::new("Whether claims are deleted with their pods. Default: they are kept.")
        .text(
            "whenDeleted",
            "Retain or Delete the claims when the StatefulSet is deleted. Default: Retain.",
        )
        .text(
            "whenScaled",
            "Retain or Delete the claims of pods that are scaled away. Default: Retain.",
        );
    spec()
        .with("lifecycle", lifecycle())
        .with(
            "ordinals",
            Object::new("How pods are numbered; needs the gate StatefulSetStartOrdinal. Default: from 0.")
                .int32(
                    "start",
                    "Number of the first pod, zero or more; the others follow. Default: 0.",
                ),
        )
        .with("persistentVolumeClaimRetentionPolicy", claims)
        .with("reserveOrdinals", reserved())
        .with(
            "scaleStrategy",
            Object::new(
                "How pods are added and removed; all fields are optional. Default: those of its fields.",
            )
            .int_or_string(
                "maxUnavailable",
                "Most pods, or percent of replicas, unavailable while scaling. Default: no limit.",
            ),
        )
        .with(
            "volumeClaimUpdateStrategy",
            Object::new("How claims follow changed claim templates. Default: those of its fields.").text(
                "type",
                "OnPodRollingUpdate resizes claims with their pods, OnDelete leaves them. Default: OnDelete.",
            ),
        )
}

fn reserved() -> Value {
    list(
        "Numbers, or ranges as 3-5, that no pod may have. Default: none.",
        int_or_string("One number, zero or more, or a range such as 3-5, both ends included."),
    )
}

fn spec() -> Object {
    Object::new("Desired state: how many pods, of which template, and how they are updated.")
        .int32("replicas", "Number of desired pods, zero or more. Default: 1.")
        .with(
            "selector",
            label_selector("Labels of the pods that belong to this object; must match the template; cannot change."),
        )
        .with("template", pod_template())
        .with("volumeClaimTemplates", claim_templates())
        .text("serviceName", "Service that gives pods their host names; cannot change. Default: none.")
        .text(
            "podManagementPolicy",
            "OrderedReady: one pod after the other. Parallel: together; cannot change. Default: OrderedReady.",
        )
        .with("updateStrategy", update())
        .int32("revisionHistoryLimit", "Number of unused revisions kept for rollbacks. Default: 10.")
        .required(&["selector", "template"])
}

fn update() -> Object {
    let unordered =
        Object::new("Update pods in an order of your own; only with Parallel. Default: by number.")
            .with("priorityStrategy", priority_strategy());
    let rolling = Object::new("Parameters of RollingUpdate: how many pods are updated, and in which order. Default: those of its fields.")
        .with("inPlaceUpdateStrategy", in_place_strategy())
        .int_or_string(
            "maxUnavailable",
            "Most pods, or percent of replicas, unavailable; more than 1 needs Parallel. Default: 1.",
        )
        .int32(
            "minReadySeconds",
            "Seconds, up to 300, a pod must be Ready before the next changes. Default: 0.",
        )
        .int32(
            "partition",
            "Number of pods kept on the old revision, counted from the first. Default: 0.",
        )
        .flag(
            "paused",
            "Stop updating pods; adding and removing pods continues. Default: false.",
        )
        .text(
            "podUpdatePolicy",
            "How a pod is updated: ReCreate, InPlaceIfPossible or InPlaceOnly. Default: ReCreate.",
        )
        .with("unorderedUpdate", unordered);
    Object::new(
        "How pods are updated to a changed template; all fields are optional. Default: those of its fields.",
    )
    .text(
        "type",
        "RollingUpdate updates pods, OnDelete waits until pods are deleted. Default: RollingUpdate.",
    )
    .with("rollingUpdate", rolling)
}

fn status() -> Object {
    let condition = condition(
        "One aspect of the state, such as FailedCreatePod or FailedUpdatePod.",
        "FailedCreatePod or FailedUpdatePod",
    )
    .required(&["type", "status"]);
    Object::new("Observed state of the pods; written by the controller.")
        .int64(
            "observedGeneration",
            "Generation of the specification that the numbers belong to.",
        )
        .int32(
            "replicas",
            "Number of pods that exist, those that are going included.",
        )
        .int32(
            "readyReplicas",
            "Number of pods that run and are Ready, of whatever revision.",
        )
        .int32(
            "availableReplicas",
            "Number of pods that have been Ready for minReadySeconds.",
        )
        .int32(
            "currentReplicas",
            "Number of pods of the current revision that stay.",
        )
        .int32(
            "updatedReplicas",
            "Number of pods of the update revision that stay.",
        )
        .text(
            "currentRevision",
            "Name of the revision that was last rolled out in full.",
        )
        .text("updateRevision", "Name of the revision that is being rolled out.")
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
            "currentReplicas",
            "updatedReplicas",
        ])
}

fn newer_status() -> Object {
    let claim = Object::new("How many claims of one template match the template.")
        .text(
            "volumeClaimName",
            "Name of the claim template that this is about.",
        )
        .int32(
            "compatibleReplicas",
            "Number of pods whose claim matches the template.",
        )
        .int32(
            "compatibleReadyReplicas",
            "Number of those whose claim has been resized and is ready.",
        )
        .required(&["volumeClaimName", "compatibleReplicas", "compatibleReadyReplicas"]);
    Object::new("")
        .int32(
            "updatedReadyReplicas",
            "Number of pods of the update revision that are Ready.",
        )
        .int32(
            "updatedAvailableReplicas",
            "Number of pods of the update revision that are available.",
        )
        .list(
            "volumeClaims",
            "How far claims follow their templates, one entry for each.",
            claim,
        )
}
