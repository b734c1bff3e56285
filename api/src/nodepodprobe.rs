//! NodePodProbe: the probes that the agent of one node runs, and their results.
//!
//! [`NodePodProbe`] is read from raw JSON with [`NodePodProbe::from_value`]. Entries are written back with the
//! members that this build does not know.

mod types;

use crate::convert::Conversion;
use crate::definition::{Kind, Scope, Version};
use crate::names::APPS_GROUP;
use crate::resource::ResourceId;
use crate::schema::Object;
use crate::schema::shared::probe;

pub use types::{ContainerProbe, NodePodProbe, PodProbeStatus, PodProbes, ProbeName, ProbeState};

/// NodePodProbe.
pub const KIND: Kind = Kind {
    group: APPS_GROUP,
    kind: "NodePodProbe",
    plural: "nodepodprobes",
    short_names: &[],
    scope: Scope::Cluster,
    about: "NodePodProbe lists the pods that the agent of one node probes, and holds the results.",
    versions,
    conversion: Conversion::OneVersion,
};

/// The resource of the kind.
pub const RESOURCE: ResourceId = ResourceId::of(&KIND);

fn versions() -> Vec<Version> {
    let one = Object::new("One probe of one container of the pod, with its name.")
        .text(
            "name",
            "Name of the probe: that of its PodProbeMarker, a number sign, its own.",
        )
        .text(
            "containerName",
            "Name of the container in the pod that is probed.",
        )
        .with("probe", probe())
        .required(&["containerName", "name", "probe"]);
    let pod = Object::new("One pod of this node, and the probes of its containers.")
        .text("namespace", "Namespace of the pod whose containers are probed.")
        .text("name", "Name of the pod that is probed, in its namespace.")
        .text(
            "uid",
            "UID of the pod, which differs from that of a later pod of the same name.",
        )
        .text("IP", "Address of the pod that network probes are sent to.")
        .list("probes", "Probes of the pod's containers. Default: none.", one)
        .required(&["IP", "name", "namespace", "uid"]);
    let spec = Object::new("Pods of the node of this name that its agent probes.").list(
        "podProbes",
        "Pods of this node with their probes. Default: none.",
        pod,
    );
    let answer = Object::new("Newest result of one probe, whatever it is.")
        .text("name", "Name of the probe, as in the specification.")
        .text(
            "state",
            "Newest result of the probe: Succeeded, Failed or Unknown.",
        )
        .time("lastProbeTime", "Time when the container was last probed.")
        .time(
            "lastTransitionTime",
            "Time when the result of the probe last changed.",
        )
        .text(
            "message",
            "Output of the probe, or the reason why it failed to run.",
        )
        .required(&["name", "state"]);
    let pod = Object::new("Newest results of one pod on this node, by probe.")
        .text("namespace", "Namespace of the pod whose containers were probed.")
        .text("name", "Name of the pod that was probed, in its namespace.")
        .text(
            "uid",
            "UID of the pod, which differs from that of a later pod of the same name.",
        )
        .list(
            "probeStates",
            "Newest results of the probes of the pod. Default: none.",
            answer,
        )
        .required(&["name", "namespace", "uid"]);
    let status = Object::new("Results of the probes; written by the agent of the node.").list(
        "podProbeStatuses",
        "Newest results of the probes, by pod. Default: none.",
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
