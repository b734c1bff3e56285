//! Why a pod is probed or not, and what its probes report, in words.

use std::{collections::BTreeMap, sync::Arc};

use kruise_api::{
    nodepodprobe::{NodePodProbe, ProbeName, ProbeState},
    podprobemarker::{MarkedProbe, State},
};
use kruise_plan_kit::Why;
use kruise_views::{PodView, Truth};

use super::{
    snapshot::Snapshot,
    targets::{Place, place},
};

/// Explains the marker, and each of its pods.
pub(super) fn explain(
    snapshot: &Snapshot<'_>,
    pods: &[&PodView],
    nodes: &BTreeMap<String, Arc<NodePodProbe>>,
) -> Vec<Why> {
    let places: Vec<Result<Place, &str>> = pods.iter().map(|pod| place(pod, snapshot.nodes)).collect();
    let count = |wanted| places.iter().filter(|place| **place == Ok(wanted)).count();
    let (on_nodes, on_virtual) = (count(Place::Node), count(Place::Virtual));
    let summary = format!(
        "of {} pods that match, agents probe {on_nodes}; {on_virtual} are on virtual nodes",
        pods.len()
    );
    let of_pods = pods.iter().zip(&places).map(|(pod, place)| {
        let text = match place {
            Err(reason) => (*reason).to_owned(),
            Ok(Place::Virtual) if snapshot.options.marks_serverless => {
                "is on a virtual node: its conditions are those that the provider sets".to_owned()
            }
            Ok(Place::Virtual) => {
                "is on a virtual node, which needs the gate EnablePodProbeMarkerOnServerless".to_owned()
            }
            Ok(Place::Node) => probed(snapshot, pod, nodes),
        };
        Why::new(pod.name.to_string(), text)
    });
    std::iter::once(Why::of_set(summary)).chain(of_pods).collect()
}

/// What the agent reports of a pod.
fn probed(snapshot: &Snapshot<'_>, pod: &PodView, nodes: &BTreeMap<String, Arc<NodePodProbe>>) -> String {
    let name = pod.node.as_deref().unwrap_or_default();
    let Some(node) = nodes.get(name) else {
        return format!("is not probed yet: node {name} has no NodePodProbe, which it gets once it is ready");
    };
    let marker = &snapshot.marker.metadata;
    let status = node
        .statuses
        .iter()
        .find(|status| status.namespace == marker.namespace && status.uid == *pod.uid);
    let of_probe = |probe: &MarkedProbe| {
        let full = ProbeName {
            marker: &marker.name,
            probe: &probe.name,
        }
        .to_text();
        let states = status.iter().flat_map(|status| &status.probe_states);
        let state = states.into_iter().find(|state| state.name == full);
        format!("{}: {}", probe.name, result(probe, state, pod))
    };
    let probes: Vec<String> = snapshot.marker.spec.probes.iter().map(of_probe).collect();
    probes.join("; ")
}

fn result(probe: &MarkedProbe, state: Option<&ProbeState>, pod: &PodView) -> String {
    let Some(state) = state.filter(|state| state.state != State::None) else {
        return "no result yet".to_owned();
    };
    let expected = if state.state == State::Succeeded {
        Truth::True
    } else {
        Truth::False
    };
    let condition = pod.condition(&probe.pod_condition_type);
    let differs = condition.is_some_and(|condition| condition.status != expected);
    let message = match state.message.trim() {
        "" => String::new(),
        message => format!(" ({message})"),
    };
    let contradicted = if differs {
        format!(
            ", but another probe or component sets {}",
            probe.pod_condition_type
        )
    } else {
        String::new()
    };
    format!("{:?}{message}{contradicted}", state.state)
}
