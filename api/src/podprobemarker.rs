//! PodProbeMarker: probes whose results become labels, annotations and conditions of pods.
//!
//! [`PodProbeMarker`] is read from raw JSON with [`PodProbeMarker::from_value`].

mod types;

use crate::convert::Conversion;
use crate::definition::{Kind, Scope, Version};
use crate::names::APPS_GROUP;
use crate::resource::ResourceId;
use crate::schema::shared::probe;
use crate::schema::{Object, label_selector};

pub use types::{MarkedProbe, MarkerPolicy, PodProbeMarker, PodProbeMarkerSpec, PodProbeMarkerStatus, State};

/// PodProbeMarker.
pub const KIND: Kind = Kind {
    group: APPS_GROUP,
    kind: "PodProbeMarker",
    plural: "podprobemarkers",
    short_names: &[],
    scope: Scope::Namespaced,
    about: "PodProbeMarker probes containers and marks their pods according to the results.",
    versions,
    conversion: Conversion::OneVersion,
};

/// The resource of the kind.
pub const RESOURCE: ResourceId = ResourceId::of(&KIND);

fn versions() -> Vec<Version> {
    let marker = Object::new("Labels and annotations that a pod gets after one kind of result.")
        .text(
            "state",
            "Result after which the pod is marked: Succeeded or Failed.",
        )
        .text_map(
            "labels",
            "Labels that the pod gets after this result. Default: none.",
            "Value of the label that the pod gets.",
        )
        .text_map(
            "annotations",
            "Annotations that the pod gets after this result. Default: none.",
            "Value of the annotation that the pod gets.",
        )
        .required(&["state"]);
    let one = Object::new("One probe of one container, and the marks for its results.")
        .text(
            "name",
            "Name of the probe, unique in the list; part of its identity.",
        )
        .text(
            "containerName",
            "Name of the container in the pod that is probed.",
        )
        .with("probe", probe())
        .list(
            "markerPolicy",
            "Labels and annotations for each kind of result. Default: none.",
            marker,
        )
        .text(
            "podConditionType",
            "Type of the pod condition that holds the result. Default: no condition.",
        )
        .required(&["containerName", "name", "probe"]);
    let spec = Object::new("Which pods are probed, and how they are marked.")
        .list(
            "probes",
            "Probes of the containers, each with a unique name.",
            one,
        )
        .with(
            "selector",
            label_selector("Labels of the pods in this namespace that are probed."),
        )
        .required(&["probes", "selector"]);
    let status = Object::new("Number of matching pods; written by the controller.")
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
