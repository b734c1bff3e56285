//! NodePodProbe: the probes that the agent of one node runs, and their results.

use crate::convert::Conversion;
use crate::definition::{Kind, Scope, Version};
use crate::names::APPS_GROUP;
use crate::schema::Object;
use crate::schema::shared::probe;

/// NodePodProbe.
pub const KIND: Kind = Kind {
    group: APPS_GROUP,
    kind: "NodePodProbe",
    plural: "nodepodprobes",
    short_names: &[],
    scope: Scope::Cluster,
    about: "NodePodProbe tells the agent of one node which pods to probe, and holds the answers.",
    versions,
    conversion: Conversion::OneVersion,
};

fn versions() -> Vec<Version> {
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
