//! Pods on virtual nodes: their provider probes them and sets conditions, which lead to labels and annotations.

use crate::probes;
use kruise_api::{
    meta::StringMap,
    podprobemarker::{MarkedProbe, PodProbeMarker, State},
};
use kruise_plan_kit::{
    ObjectWrites, Part,
    pod_writes::{self, Guard},
    put,
};
use kruise_views::{PodView, Truth};
use serde_json::json;

/// The write that gives a pod the labels and annotations of its conditions, if it lacks one. Nothing is removed.
pub(super) fn mark(marker: &PodProbeMarker, pod: &PodView) -> Option<ObjectWrites> {
    let mut patch = json!({});
    for probe in &marker.spec.probes {
        for policy in reached(probe, pod) {
            add(&mut patch, "labels", &policy.labels, |key, value| {
                pod.labels.get(key) == Some(value)
            });
            add(&mut patch, "annotations", &policy.annotations, |key, value| {
                pod.annotation_prints.has(key, value)
            });
        }
    }
    patch.get("metadata")?;
    let reason = "conditions of a virtual node's provider";
    let step = pod_writes::patch(pod, probes::MARK_POD, Part::Main, patch, Guard::SamePod, reason);
    Some(ObjectWrites::of_pod(vec![step]))
}

/// The policies that the condition of a probe has reached.
fn reached<'p>(
    probe: &'p MarkedProbe,
    pod: &PodView,
) -> impl Iterator<Item = &'p kruise_api::podprobemarker::MarkerPolicy> {
    let condition = Some(&*probe.pod_condition_type).filter(|kind| !kind.is_empty());
    let status = condition
        .and_then(|kind| pod.condition(kind))
        .map(|condition| condition.status);
    let state = match status {
        Some(Truth::True) => Some(State::Succeeded),
        Some(Truth::False) => Some(State::Failed),
        Some(Truth::Unknown) | None => None,
    };
    probe
        .marker_policy
        .iter()
        .filter(move |policy| Some(policy.state) == state)
}

fn add(patch: &mut serde_json::Value, member: &str, wanted: &StringMap, has: impl Fn(&str, &str) -> bool) {
    for (key, value) in wanted.iter().filter(|(key, value)| !has(key, value)) {
        put(patch, &["metadata", member, key], value.as_str().into());
    }
}
