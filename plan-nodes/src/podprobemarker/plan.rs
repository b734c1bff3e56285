//! The order of decisions.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kruise_api::{
    names::podprobemarker::CLEANUP,
    nodepodprobe::NodePodProbe,
    podprobemarker::{KIND, PodProbeMarkerStatus},
};
use kruise_plan_kit::{
    EventNote, Explain, Intent, ObjectWrites, Owner, Phase, Plan, StatusPatch, Urgency, Why, finalizers,
    status_patch,
};
use kruise_views::PodView;

use super::reasons;
use super::{
    desired::{Wanted, port_name},
    explain,
    merge::Marker,
    serverless,
    snapshot::Snapshot,
    targets::{Place, place},
};
use crate::probes;

/// The probes of a marker on a node become those that it wants.
const SET_PROBES: Intent = Intent::of_update("set-probes");
/// A marker that is deleted is held back until its probes are gone.
const HOLD_MARKER: Intent = Intent::of_update("hold-marker");
/// A marker that is being deleted is not held back any more.
const RELEASE_MARKER: Intent = Intent::of_update("release-marker");

/// Decides what a marker needs now.
pub fn plan(snapshot: &Snapshot<'_>) -> Plan {
    let metadata = &snapshot.marker.metadata;
    let owner = Owner::new(snapshot.api_version, KIND.kind, metadata);
    if metadata.deletion_timestamp.is_some() {
        return release(snapshot, &owner);
    }
    // First: a marker that is deleted in between would leave its probes behind.
    if let Some(hold) = finalizers(snapshot, &owner, true) {
        return Plan {
            writes: vec![hold],
            ..Plan::default()
        };
    }
    keep(snapshot, &owner)
}

/// Removes the probes of a marker from all nodes, and then lets the marker go.
fn release(snapshot: &Snapshot<'_>, owner: &Owner<'_>) -> Plan {
    let nodes = nodes(snapshot, &BTreeMap::new());
    let mut writes: Vec<ObjectWrites> = nodes
        .values()
        .filter_map(|node| set(snapshot, node, &[]))
        .collect();
    let left = writes.len();
    if writes.is_empty() {
        writes.extend(finalizers(snapshot, owner, false));
    }
    let text = format!("the marker is being deleted: {left} nodes have probes of it");
    let why = (snapshot.explain == Explain::Yes).then(|| Why::of_set(text));
    Plan {
        writes,
        why: why.into_iter().collect(),
        ..Plan::default()
    }
}

/// Makes the marker wait for the controller when it is deleted, or not any more; `None` if that is so already.
fn finalizers(snapshot: &Snapshot<'_>, owner: &Owner<'_>, holds: bool) -> Option<ObjectWrites> {
    let (intent, reason) = if holds {
        (
            HOLD_MARKER,
            "its probes are removed from nodes before the marker is deleted",
        )
    } else {
        (RELEASE_MARKER, "no node has a probe of the marker")
    };
    let target = owner.target(kruise_api::podprobemarker::RESOURCE, owner.name);
    let write = finalizers::write(&snapshot.marker.metadata, target, CLEANUP, holds, intent)?;
    Some(ObjectWrites::alone(Phase::Cleanup, write, reason))
}

/// Brings the probes of all nodes to what is wanted, and marks the pods of virtual nodes.
fn keep(snapshot: &Snapshot<'_>, owner: &Owner<'_>) -> Plan {
    let mut pods: Vec<&PodView> = snapshot.pods.iter().map(|pod| &**pod).collect();
    pods.sort_by(|one, other| one.name.cmp(&other.name));
    let in_place = |wanted| {
        let is_there = move |pod: &&PodView| place(pod, snapshot.nodes) == Ok(wanted);
        pods.iter().copied().filter(is_there)
    };
    let mut by_node: BTreeMap<&str, Vec<Wanted<'_>>> = BTreeMap::new();
    for pod in in_place(Place::Node) {
        let node = pod.node.as_deref().unwrap_or_default();
        let wanted = Wanted::new(snapshot.marker, pod);
        by_node.entry(node).or_default().push(wanted);
    }
    let nodes = nodes(snapshot, &by_node);
    let mut plan = Plan::default();
    for node in nodes.values() {
        let wanted = by_node.get(&*node.metadata.name).map(Vec::as_slice);
        plan.writes
            .extend(set(snapshot, node, wanted.unwrap_or_default()));
    }
    if snapshot.options.marks_serverless {
        let marks = in_place(Place::Virtual).filter_map(|pod| serverless::mark(snapshot.marker, pod));
        plan.writes.extend(marks);
    }
    plan.events.extend(unresolved(by_node.values().flatten()));
    let matched = by_node.values().map(Vec::len).sum::<usize>() + in_place(Place::Virtual).count();
    plan.status = report(snapshot, owner, matched);
    if snapshot.explain == Explain::Yes {
        plan.why = explain::explain(snapshot, &pods, &nodes);
    }
    plan
}

/// The NodePodProbes that have probes of the marker, or are to have some.
fn nodes(
    snapshot: &Snapshot<'_>,
    wanted: &BTreeMap<&str, Vec<Wanted<'_>>>,
) -> BTreeMap<String, Arc<NodePodProbe>> {
    let metadata = &snapshot.marker.metadata;
    let listed = snapshot.probes.of_marker(&metadata.namespace, &metadata.name);
    let to_be = wanted.keys().filter_map(|name| snapshot.probes.of_node(name));
    let all = listed.into_iter().chain(to_be);
    let alive = all.filter(|node| node.metadata.deletion_timestamp.is_none());
    alive.map(|node| (node.metadata.name.clone(), node)).collect()
}

/// The write that leaves these probes of the marker on a node, if it has others.
fn set(snapshot: &Snapshot<'_>, node: &NodePodProbe, wanted: &[Wanted<'_>]) -> Option<ObjectWrites> {
    let metadata = &snapshot.marker.metadata;
    let marker = Marker {
        namespace: &metadata.namespace,
        name: &metadata.name,
    };
    let pods = marker.revise(node, wanted)?;
    let reason = match wanted.len() {
        0 => "no pod of the node is probed".to_owned(),
        1 => "1 pod of the node is probed".to_owned(),
        count => format!("{count} pods of the node are probed"),
    };
    Some(probes::replace(node, &pods, SET_PROBES, reason))
}

/// One event for each probe whose port some pods do not have.
fn unresolved<'w, 'a: 'w>(wanted: impl Iterator<Item = &'w Wanted<'a>>) -> Vec<EventNote> {
    let found = wanted.flat_map(|wanted| &wanted.unresolved).map(|probe| {
        let port = port_name(&probe.probe).unwrap_or_default();
        (&*probe.name, &*probe.container_name, port)
    });
    let found: BTreeSet<(&str, &str, &str)> = found.collect();
    let note = |(name, container, port): (&str, &str, &str)| {
        let message = format!("probe {name}: container {container} has no port named {port:?}");
        EventNote::new(&reasons::PROBE_PORT_UNKNOWN, message)
    };
    found.into_iter().map(note).collect()
}

fn report(snapshot: &Snapshot<'_>, owner: &Owner<'_>, matched: usize) -> Option<StatusPatch> {
    let marker = snapshot.marker;
    let status = PodProbeMarkerStatus {
        observed_generation: marker.metadata.generation,
        matched_pods: i64::try_from(matched).unwrap_or(i64::MAX),
    };
    let urgency = Urgency {
        members: &["observedGeneration"],
        settled: false,
    };
    status_patch(
        owner.target(kruise_api::podprobemarker::RESOURCE, owner.name),
        &marker.metadata.resource_version,
        marker.status.as_ref(),
        &status,
        urgency,
    )
}
