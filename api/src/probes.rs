//! Probes that mark pods: what users ask for, and what the agent of each node is told.

use crate::convert::Conversion;
use crate::definition::{Kind, Scope, Version};
use crate::names::APPS_GROUP;
use crate::schema::shared::probe;
use crate::schema::{Object, label_selector};

/// PodProbeMarker.
pub const POD_PROBE_MARKER: Kind = Kind {
    group: APPS_GROUP,
    kind: "PodProbeMarker",
    plural: "podprobemarkers",
    short_names: &[],
    scope: Scope::Namespaced,
    about: "PodProbeMarker asks containers by probes, and marks their pods with the answers.",
    versions: markers,
    conversion: Conversion::OneVersion,
};

/// NodePodProbe.
pub const NODE_POD_PROBE: Kind = Kind {
    group: APPS_GROUP,
    kind: "NodePodProbe",
    plural: "nodepodprobes",
    short_names: &[],
    scope: Scope::Cluster,
    about: "NodePodProbe tells the agent of one node which pods to probe, and holds the answers.",
    versions: node_probes,
    conversion: Conversion::OneVersion,
};

fn markers() -> Vec<Version> {
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

fn node_probes() -> Vec<Version> {
    let one = Object::new("One probe, asked of one container of the pod.")
        .text(
            "name",
            "Name of the probe: that of its PodProbeMarker, a number sign, its own.",
        )
        .text("containerName", "Name of the container that the probe asks.")
        .with("probe", probe())
        .required(&["containerName", "name", "probe"]);
    let pod = Object::new("One pod of this node, and the probes that it is asked.")
        .text("namespace", "Namespace of the pod whose containers are probed.")
        .text("name", "Name of the pod that is probed, in its namespace.")
        .text(
            "uid",
            "UID of the pod, which tells it from a later one of its name.",
        )
        .text("IP", "Address of the pod that network probes are sent to.")
        .list("probes", "Probes of the pod's containers. Default: none.", one)
        .required(&["IP", "name", "namespace", "uid"]);
    let spec = Object::new("Pods of the node of this name that its agent probes.").list(
        "podProbes",
        "Pods of this node with their probes. Default: none.",
        pod,
    );
    let answer = Object::new("Newest answer to one probe, of whatever kind.")
        .text("name", "Name of the probe, as in the specification.")
        .text("state", "Newest answer: Succeeded, Failed or Unknown.")
        .time(
            "lastProbeTime",
            "Time when the container was last asked by the probe.",
        )
        .time("lastTransitionTime", "Time when the answer last became another.")
        .text(
            "message",
            "What the container said, or why it could not be asked.",
        )
        .required(&["name", "state"]);
    let pod = Object::new("Newest answers of one pod on this node, by probe.")
        .text("namespace", "Namespace of the pod whose containers were probed.")
        .text("name", "Name of the pod that was probed, in its namespace.")
        .text(
            "uid",
            "UID of the pod, which tells it from a later one of its name.",
        )
        .list(
            "probeStates",
            "Newest answers to the probes of the pod. Default: none.",
            answer,
        )
        .required(&["name", "namespace", "uid"]);
    let status = Object::new("Answers to the probes; written by the agent of the node.").list(
        "podProbeStatuses",
        "Newest answers, pod by pod. Default: none.",
        pod,
    );
    vec![Version {
        name: "v1alpha1",
        storage: true,
        spec: spec.into(),
        status: status.into(),
        scale: false,
        columns: Vec::new(),
    }]
}
