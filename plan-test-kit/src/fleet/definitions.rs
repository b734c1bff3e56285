//! The definitions of a version: those of this build, with the versions and conversions that it had. Which versions
//! are stored, its objects say; of kinds without a fixture it is known from its documentation.

use kruise_api::definition::Kind;
use kruise_api::kinds;
use serde_json::{Value, json};

/// Kinds whose newer version 1.8.4 has.
const NEWER_IN_1_8: [&str; 1] = ["StatefulSet"];
/// Kinds whose newer version 1.9.0 has.
const NEWER_IN_1_9: [&str; 8] = [
    "StatefulSet",
    "DaemonSet",
    "SidecarSet",
    "AdvancedCronJob",
    "BroadcastJob",
    "ImagePullJob",
    "ImageListPullJob",
    "NodeImage",
];
/// Kinds that have one version everywhere.
const SINGLE: [&str; 3] = ["EphemeralJob", "PodProbeMarker", "NodePodProbe"];
/// Kinds whose versions OpenKruise converts by their names alone.
const SAME: [&str; 6] = [
    "AdvancedCronJob",
    "BroadcastJob",
    "ImagePullJob",
    "ImageListPullJob",
    "NodeImage",
    "PodUnavailableBudget",
];

/// Has the kind `v1alpha1` only?
pub(super) fn is_older(version: &str, kind: &str) -> bool {
    match version {
        "1.8.4" => !NEWER_IN_1_8.contains(&kind),
        "1.9.0" => !NEWER_IN_1_9.contains(&kind),
        _ => SINGLE.contains(&kind),
    }
}

/// The version that objects of a kind of `apps.kruise.io` are stored in.
pub(super) fn api_version(version: &str, kind: &str) -> String {
    let stored = if is_older(version, kind) {
        "v1alpha1"
    } else {
        "v1beta1"
    };
    format!("apps.kruise.io/{stored}")
}

/// Names of the definitions that have `v1alpha1` only, and a newer version here.
pub(super) fn only_older(version: &str) -> Vec<String> {
    let older = kinds::ALL.into_iter().filter(|kind| is_older(version, kind.kind));
    older
        .filter(|kind| !SINGLE.contains(&kind.kind))
        .map(Kind::name)
        .collect()
}

/// The definitions, for a manager in this namespace.
pub(super) fn of(version: &str, namespace: &str) -> Vec<Value> {
    let definitions = kinds::ALL.into_iter().map(|kind| {
        let mut definition = kind.manifest(namespace);
        if is_older(version, kind.kind) {
            let versions = definition["spec"]["versions"].as_array_mut().unwrap();
            versions.retain(|one| one["name"] == "v1alpha1");
            versions[0]["storage"] = json!(true);
        }
        definition["spec"]["conversion"] = if is_older(version, kind.kind) || SAME.contains(&kind.kind) {
            json!({"strategy": "None"})
        } else {
            let service = json!({"name": "kruise-webhook-service", "namespace": namespace, "path": "/convert", "port": 443});
            json!({"strategy": "Webhook", "webhook": {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1", "v1beta1"]}})
        };
        definition
    });
    definitions.collect()
}
