//! PersistentPodState: recreated pods of StatefulSets are scheduled to nodes like those that they ran on.
//!
//! [`PersistentPodState`] is read from raw JSON with [`PersistentPodState::from_value`] and never written back.

mod types;

use serde_json::Value;

use crate::convert::{Conversion, Rule};
use crate::definition::{Kind, Scope, Version};
use crate::names::APPS_GROUP;
use crate::resource::ResourceId;
use crate::schema::shared::target_reference;
use crate::schema::{Object, at_least, int32, map, one_of, string};

pub use types::{
    NodeTopology, PersistentPodAnnotation, PersistentPodState, PersistentPodStateSpec,
    PersistentPodStateStatus, PodState, PreferredTopology, WHEN_DELETED,
};

/// PersistentPodState.
pub const KIND: Kind = Kind {
    group: APPS_GROUP,
    kind: "PersistentPodState",
    plural: "persistentpodstates",
    short_names: &[],
    scope: Scope::Namespaced,
    about: "PersistentPodState brings pods of a StatefulSet back to nodes like those they were on.",
    versions,
    conversion: Conversion::Rules(&[
        Rule::Renamed {
            older: "spec.requiredPersistentTopology.nodeTopologyKeys",
            newer: "keys",
        },
        Rule::Renamed {
            older: "spec.preferredPersistentTopology[].preference.nodeTopologyKeys",
            newer: "keys",
        },
    ]),
};

/// The resource of the kind.
pub const RESOURCE: ResourceId = ResourceId::of(&KIND);

fn versions() -> Vec<Version> {
    let policy =
        string("WhenScaled: forget pods that are scaled away. WhenDeleted: keep them. Default: WhenScaled.");
    let weight = int32("Weight, 1 to 100, of nodes that agree in these labels.");
    vec![
        version(
            "v1alpha1",
            false,
            "nodeTopologyKeys",
            policy.clone(),
            weight.clone(),
        ),
        version(
            "v1beta1",
            true,
            "keys",
            one_of(policy, &["WhenScaled", "WhenDeleted"]),
            at_least(weight, 0),
        ),
    ]
}

fn version(name: &'static str, storage: bool, keys: &'static str, policy: Value, weight: Value) -> Version {
    let topology = |help| {
        Object::new(help)
            .texts(keys, "Keys of node labels, such as topology.kubernetes.io/zone.")
            .required(if keys == "keys" {
                &["keys"]
            } else {
                &["nodeTopologyKeys"]
            })
    };
    let preferred = Object::new("Labels in which the pod's new node is preferred to agree with the old.")
        .with("weight", weight)
        .with(
            "preference",
            topology("Labels in which the new node agrees with the old."),
        )
        .required(&["preference", "weight"]);
    let annotation = Object::new("One annotation of pods whose value is remembered.")
        .text("key", "Key of the annotation whose value is recorded.")
        .required(&["key"]);
    let spec =
        Object::new("Which pods are scheduled to nodes like their old ones, and which node labels count.")
            .list(
                "persistentPodAnnotations",
                "Annotations of pods that are remembered. Default: none.",
                annotation,
            )
            .with("persistentPodStateRetentionPolicy", policy)
            .list(
                "preferredPersistentTopology",
                "Labels in which nodes are preferred to agree. Default: none.",
                preferred,
            )
            .with(
                "requiredPersistentTopology",
                topology("Labels in which the pod's new node must agree with the old. Default: none."),
            )
            .with(
                "targetRef",
                target_reference(
                    "Workload that the pods belong to, a StatefulSet of either group; cannot change.",
                )
                .required(&["apiVersion", "kind", "name"]),
            )
            .required(&["targetRef"]);
    let state = Object::new("Where one pod was last seen, and with what.")
        .text("nodeName", "Name of the node that the pod was last seen on.")
        .text_map(
            "nodeTopologyLabels",
            "Labels of that node that are named in the specification.",
            "Value of the label of that node.",
        )
        .text_map(
            "annotations",
            "Annotations of the pod that are named in the specification.",
            "Value of the annotation of the pod.",
        );
    let status = Object::new("Where the pods were last seen; written by the controller.")
        .int64(
            "observedGeneration",
            "Generation of the specification that the states belong to.",
        )
        .with(
            "podStates",
            map("Where each pod was last seen, by the pod's name.", state),
        )
        .required(&["observedGeneration"]);
    Version {
        name,
        storage,
        spec: spec.into(),
        status: status.into(),
        scale: false,
        columns: Vec::new(),
    }
}
