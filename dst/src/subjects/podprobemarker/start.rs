//! PodProbeMarkers as users create them, and the pods that they select.

use crate::rules::prelude::*;

pub const NAME: &str = "podprobemarker";
pub const MARKERS: Resource = Resource::kruise("podprobemarkers", "PodProbeMarker").older();
pub const PROBES: Resource = Resource::kruise("nodepodprobes", "NodePodProbe").older();

/// Names of the markers. One ends in the other.
pub const NAMES: [&str; 2] = ["a", "ba"];
/// Annotation of a pod: the result of its probes.
pub const RESULT: &str = "dst/result";

/// The pods and nodes of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Nodes.
    pub nodes: u8,
    /// Pods at first.
    pub pods: u8,
    /// Number of probes of each marker, one or two.
    pub probes: [u8; 2],
}

/// Something that a user does.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Edit {
    /// The marker of a place is deleted, and created again.
    Again(u8),
    /// It is deleted.
    Delete(u8),
    /// It has so many probes.
    Probes(u8, u8),
    /// There is one pod more.
    Pod,
    /// The pod of this number, among those that are there, is deleted.
    Remove(u8),
    /// It has the label that markers select, or has not.
    Label(u8, bool),
    /// Its probes have this result.
    Result(u8, String),
}

/// The name of the marker of a place.
pub fn name(place: u8) -> &'static str {
    if place == 0 { NAMES[0] } else { NAMES[1] }
}

/// The marker of a place with so many probes.
pub fn marker(place: u8, count: u8) -> Value {
    json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "PodProbeMarker",
        "metadata": {"name": name(place), "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "game"}}, "probes": probes(place, count)}})
}

/// So many probes of the marker of a place.
pub fn probes(place: u8, count: u8) -> Value {
    let marker = name(place);
    let probe = |probe: &str| {
        let key = format!("{marker}-{probe}");
        json!({"name": probe, "containerName": "main", "podConditionType": condition(marker, probe),
        "probe": {"exec": {"command": ["true"]}},
        "markerPolicy": [
            {"state": "Succeeded", "labels": {(key.as_str()): "good"}, "annotations": {(key.as_str()): "good"}},
            {"state": "Failed", "labels": {(key.as_str()): "bad"}},
        ]})
    };
    ["x", "y"]
        .iter()
        .take(usize::from(count.max(1)))
        .map(|name| probe(name))
        .collect()
}

/// The type of the condition of a probe.
pub fn condition(marker: &str, probe: &str) -> String {
    format!("{marker}.example/{probe}")
}
