//! ResourceDistribution: one Secret or ConfigMap in many namespaces.
//!
//! [`ResourceDistribution`] is read from raw JSON with [`ResourceDistribution::from_value`] and never written back.

mod types;

use serde_json::Value;

use crate::convert::{Conversion, Rule};
use crate::definition::{Kind, Scope, Version, columns};
use crate::names::APPS_GROUP;
use crate::resource::ResourceId;
use crate::schema::{Object, label_selector, with};

pub use types::{
    DistributionCondition, Namespaces, ResourceDistribution, ResourceDistributionSpec,
    ResourceDistributionStatus, Targets,
};

/// ResourceDistribution.
pub const KIND: Kind = Kind {
    group: APPS_GROUP,
    kind: "ResourceDistribution",
    plural: "resourcedistributions",
    short_names: &["distributor"],
    scope: Scope::Cluster,
    about: "ResourceDistribution keeps copies of one Secret or ConfigMap in many namespaces.",
    versions,
    conversion: Conversion::Rules(&[
        Rule::Renamed {
            older: "spec.targets.namespaceLabelSelector",
            newer: "namespaceSelector",
        },
        Rule::Renamed {
            older: "status.conditions[].failedNamespace",
            newer: "failedNamespaces",
        },
    ]),
};

/// The resource of the kind.
pub const RESOURCE: ResourceId = ResourceId::of(&KIND);

fn versions() -> Vec<Version> {
    vec![
        version("v1alpha1", false, "namespaceLabelSelector", "failedNamespace"),
        version("v1beta1", true, "namespaceSelector", "failedNamespaces"),
    ]
}

fn version(name: &'static str, storage: bool, selector: &'static str, failed: &'static str) -> Version {
    let resource: Value =
        Object::new("The Secret or ConfigMap as a whole; its kind and name cannot change.").into();
    let resource = with(resource, "x-kubernetes-embedded-resource", true.into());
    let mut resource = with(resource, "x-kubernetes-preserve-unknown-fields", true.into());
    if let Some(members) = resource.as_object_mut() {
        members.remove("properties");
    }
    let listed = |help, list: &str| {
        let namespace = Object::new("One namespace, by its name; it need not exist yet.").text(
            "name",
            "Name of the namespace; it need not exist yet. No default.",
        );
        Object::new(help).list("list", list, namespace)
    };
    let targets =
        Object::new("Namespaces that get a copy: those that are named or selected, less the excluded.")
            .flag(
                "allNamespaces",
                "Every namespace gets a copy, but for the excluded. Default: false.",
            )
            .with(
                "excludedNamespaces",
                listed(
                    "Namespaces that get no copy, whatever else matches. Default: none.",
                    "Names of the namespaces that get none. Default: none.",
                ),
            )
            .with(
                "includedNamespaces",
                listed(
                    "Namespaces that get a copy, by their names. Default: none.",
                    "Names of the namespaces that get a copy. Default: none.",
                ),
            )
            .with(
                selector,
                label_selector("Labels of namespaces that get a copy; empty selects none. Default: none."),
            );
    let spec = Object::new("What is copied, and which namespaces get a copy.")
        .with("resource", resource)
        .with("targets", targets)
        .required(&["resource", "targets"]);
    let condition = Object::new("One way in which copying can fail, and where it has.")
        .text(
            "type",
            "Name of the condition, such as GetResourceFailed or ConflictOccurred.",
        )
        .text("status", "True where it has failed in this way, False otherwise.")
        .time(
            "lastTransitionTime",
            "Time when the condition's status last changed.",
        )
        .text(
            "reason",
            "Error of the API server, if there was one; Succeeded otherwise.",
        )
        .texts(
            failed,
            "Names of the namespaces where it has failed in this way. Default: none.",
        )
        .required(&["status", "type"]);
    let status = Object::new("Progress of the copies; written by the controller.")
        .int64(
            "observedGeneration",
            "Generation of the specification that the numbers belong to.",
        )
        .int32("desired", "Number of namespaces that should have a copy.")
        .int32(
            "succeeded",
            "Number of namespaces that have a copy as it should be.",
        )
        .int32("failed", "Number of namespaces that lack one, or have another.")
        .list(
            "conditions",
            "Ways in which copying can fail, always all of them.",
            condition,
        );
    Version {
        name,
        storage,
        spec: spec.into(),
        status: status.into(),
        scale: false,
        columns: vec![
            columns::count("TOTAL", ".status.desired"),
            columns::count("SUCCEED", ".status.succeeded"),
            columns::count("FAILED", ".status.failed"),
        ],
    }
}
