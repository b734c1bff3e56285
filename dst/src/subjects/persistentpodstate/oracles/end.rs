//! The state that PersistentPodStates must reach after the last edit and the last fault.

use super::super::start::{STATES, WORKLOAD, ZONE};
use super::known::{is_for_workload, record};
use super::wanted::Wanted;
use crate::rules::prelude::*;
use crate::subjects::statefulset::oracles::spec::{Gates, Spec};
use crate::subjects::statefulset::start::STATEFULSETS;

/// What is not yet as it should be.
pub fn unfinished(mirror: &Mirror, gates: Gates) -> Result<(), String> {
    let mut nodes = mirror.of(NODES).now();
    wrong!(some node in nodes.find(|node| !node.has_label(ZONE)) => "node {} has no zone", node.name);
    let set = mirror.of(STATEFULSETS).now().find(|set| !set.is_going());
    generated(mirror, set)?;
    for state in mirror.of(STATES).now() {
        let value = state.value();
        expect(
            format_args!("observedGeneration of {}", state.name),
            &value["status"]["observedGeneration"],
            &value["metadata"]["generation"],
        )?;
        match set.filter(|_| is_for_workload(state)) {
            Some(set) => records(state, set, mirror, gates)?,
            None => expect(
                format_args!("records of {}, which has no workload", state.name),
                pairs(&value["status"]["podStates"]).count(),
                0,
            )?,
        }
    }
    Ok(())
}

/// A workload that asks for a PersistentPodState has one that says what it asks for, unless another one is in the way; what was
/// generated for one that does not ask is gone.
fn generated(mirror: &Mirror, set: Option<&Arc<Object>>) -> Result<(), String> {
    let wanted = set.and_then(|set| Wanted::by(set));
    let mut is_there = false;
    for state in mirror.of(STATES).now() {
        is_there |= is_for_workload(state) || &*state.name == WORKLOAD;
        let is_generated = !state.owner().is_empty();
        if !is_generated {
            continue;
        }
        let owner = set.map_or("", |set| &*set.uid);
        expect(format_args!("owner of {}", state.name), state.owner(), owner)?;
        let Some(wanted) = &wanted else {
            return Err(format!("{} is there, and nobody asks for it", state.name));
        };
        expect(
            format_args!("what {} says", state.name),
            &Wanted::of(state),
            wanted,
        )?;
    }
    wrong!(wanted.is_some() && !is_there => "annotations ask for a PersistentPodState, and there is none");
    Ok(())
}

/// Every pod that is Ready is recorded as it is, and no other one is that the workload does not have.
fn records(state: &Object, set: &Object, mirror: &Mirror, gates: Gates) -> Result<(), String> {
    let wanted = Wanted::of(state);
    let pods = mirror.of(PODS).now();
    let is_ready =
        |pod: &&Arc<Object>| pod.is_active() && pod.owner() == &*set.uid && pod.state("Ready") == "True";
    for pod in pods.filter(is_ready) {
        is_exact(record(state, &pod.name), pod, &wanted, mirror)?;
    }
    let spec = &state.value()["spec"];
    if spec["persistentPodStateRetentionPolicy"] == "WhenDeleted" {
        return Ok(());
    }
    let slots = Spec::of(set, gates).slots;
    let is_wanted = |name: &str| {
        let ordinal = name.rsplit_once('-').and_then(|(_, number)| number.parse().ok());
        ordinal.is_some_and(|ordinal: i64| slots.contains(&ordinal))
    };
    let mut recorded = pairs(&state.value()["status"]["podStates"]);
    match recorded.find(|(name, _)| !is_wanted(name)) {
        Some((name, _)) => Err(format!("{name} is recorded and not wanted")),
        None => Ok(()),
    }
}

fn is_exact(record: &Value, pod: &Object, wanted: &Wanted<'_>, mirror: &Mirror) -> Result<(), String> {
    let name = &pod.name;
    let node_name = &pod.value()["spec"]["nodeName"];
    expect(format_args!("node of {name}"), &record["nodeName"], node_name)?;
    let node = node_name.as_str().and_then(|node| mirror.of(NODES).named(node));
    let node = node.ok_or_else(|| format!("the node of {name} is gone"))?;
    let mut recorded: Vec<(&str, &str)> = texts(&record["nodeTopologyLabels"]);
    recorded.sort_unstable();
    let labels: Vec<(&str, &str)> = wanted
        .labels()
        .into_iter()
        .map(|key| (key, node.label(key)))
        .collect();
    expect(format_args!("labels of {name}"), recorded, labels)?;
    let annotations = &pod.value()["metadata"]["annotations"];
    let annotations: Vec<(&str, &str)> = wanted
        .annotations
        .iter()
        .filter_map(|key| Some((*key, annotations[*key].as_str()?)))
        .collect();
    expect(
        format_args!("annotations of {name}"),
        texts(&record["annotations"]),
        annotations,
    )
}

fn texts(value: &Value) -> Vec<(&str, &str)> {
    let pairs = pairs(value);
    pairs
        .filter_map(|(key, value)| Some((key, value.as_str()?)))
        .collect()
}
