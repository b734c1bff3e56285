//! PodProbeMarker: probes whose results become labels, annotations and conditions of pods.

use crate::convert::Conversion;
use crate::definition::{Kind, Scope, Version};
use crate::names::APPS_GROUP;
use crate::schema::shared::probe;
use crate::schema::{Object, label_selector};

/// PodProbeMarker.
pub const KIND: Kind = Kind {
    group: APPS_GROUP,
    kind: "PodProbeMarker",
    plural: "podprobemarkers",
    short_names: &[],
    scope: Scope::Namespaced,
    about: "PodProbeMarker asks containers by probes, and marks their pods with the answers.",
    versions,
    conversion: Conversion::OneVersion,
};

fn versions() -> Vec<Version> {
    let marker = Object::new("What is put on a pod after one kind of answer.")
        .text(
            "state",
            "Answer after which the pod is marked: Succeeded or Failed.",
        )
        .text_map(
            "labels",
            "Labels that the pod gets after this answer. Default: none.",
            "Value of the label that the pod gets.",
        )
        .text_map(
            "annotations",
            "Annotations that the pod gets after this answer. Default: none.",
            "Value of the annotation that the pod gets.",
        )
        .required(&["state"]);
    let one = Object::new("One probe, of one container, and what its answers do to the pod.")
        .text(
            "name",
            "Name of the probe, unique in the list; part of its identity.",
        )
        .text("containerName", "Name of the container that the probe asks.")
        .with("probe", probe())
        .list(
            "markerPolicy",
            "What is put on the pod after each kind of answer. Default: nothing.",
            marker,
        )
        .text(
            "podConditionType",
            "Type of the pod's condition that tells the answer. Default: no condition.",
        )
        .required(&["containerName", "name", "probe"]);
    let spec = Object::new("Which pods are probed, and what the answers do to them.")
        .list(
            "probes",
            "Probes of the containers, each with a name of its own.",
            one,
        )
        .with(
            "selector",
            label_selector("Labels of the pods in this namespace that are probed."),
        )
        .required(&["probes", "selector"]);
    let status = Object::new("What was last seen of the pods that match; written by the controller.")
        .int64(
            "matchedPods",
            "Number of pods that match and are probed. Default: 0.",
        )
        .int64(
            "observedGeneration",
            "Generation of the specification that the number belongs to.",
        )
        .required(&["observedGeneration"]);
    vec![Version {
        name: "v1alpha1",
        storage: true,
        spec: spec.into(),
        status: status.into(),
        scale: false,
        columns: Vec::new(),
    }]
}
