//! The state that PersistentPodStates must reach after the last edit and the last fault.

use super::super::start::{STATES, WORKLOAD, ZONE};
use super::facts::{is_for_workload, ordinal, record};
use super::wanted::Wanted;
use crate::rules::prelude::*;
use crate::rules::settled::observed;
use crate::subjects::statefulset::oracles::spec::{Gates, Spec};
use crate::subjects::statefulset::start::STATEFULSETS;

/// What is not yet as it should be.
pub fn unfinished(mirror: &Mirror, gates: Gates) -> Result<(), String> {
    let mut nodes = mirror.of(NODES).now();
    wrong!(some node in nodes.find(|node| !node.has_label(ZONE)) => "node {} has no zone", node.name);
    let set = mirror.of(STATEFULSETS).now().find(|set| !set.is_going());
    generated(mirror, set)?;
    for state in mirror.of(STATES).now() {
        observed(state)?;
        match set.filter(|_| is_for_workload(state)) {
            Some(set) => records(state, set, mirror, gates)?,
            None => wrong!(pairs(&state.status()["podStates"]).count() > 0
                => "{} has records, and no workload", state.name),
        }
    }
    Ok(())
}

/// A workload that asks for a PersistentPodState has one that says what it asks for, unless another one is in the
/// way; what was generated for one that does not ask is gone.
fn generated(mirror: &Mirror, set: Option<&Arc<Object>>) -> Result<(), String> {
    let wanted = set.and_then(|set| Wanted::by(set));
    let mut is_there = false;
    for state in mirror.of(STATES).now() {
        is_there |= is_for_workload(state) || &*state.name == WORKLOAD;
        if state.owner().is_empty() {
            continue;
        }
        let owner = set.map_or("", |set| &*set.uid);
        expect(format_args!("owner of {}", state.name), state.owner(), owner)?;
        let what = format_args!("what {} says", state.name);
        expect(what, Some(Wanted::of(state)).as_ref(), wanted.as_ref())?;
    }
    wrong!(wanted.is_some() && !is_there => "annotations ask for a PersistentPodState, and there is none");
    Ok(())
}

/// Every pod that is Ready is recorded as it is, and no other one is that the workload does not have.
fn records(state: &Object, set: &Object, mirror: &Mirror, gates: Gates) -> Result<(), String> {
    let wanted = Wanted::of(state);
    let is_ready = |pod: &&Arc<Object>| pod.is_active() && pod.state("Ready") == "True";
    for pod in mirror.owned(PODS, set).filter(is_ready) {
        is_exact(record(state, &pod.name), pod, &wanted, mirror)?;
    }
    let spec = state.spec();
    if spec["persistentPodStateRetentionPolicy"] == "WhenDeleted" {
        return Ok(());
    }
    let slots = Spec::of(set, gates).slots;
    let is_wanted = |name: &str| ordinal(name).is_some_and(|ordinal| slots.contains(&ordinal));
    let mut recorded = pairs(&state.status()["podStates"]);
    wrong!(some (name, _) in recorded.find(|(name, _)| !is_wanted(name)) => "{name} is recorded and not wanted");
    Ok(())
}

fn is_exact(record: &Value, pod: &Object, wanted: &Wanted<'_>, mirror: &Mirror) -> Result<(), String> {
    let name = &pod.name;
    let node_name = &pod.spec()["nodeName"];
    expect(format_args!("node of {name}"), &record["nodeName"], node_name)?;
    let node = node_name.as_str().and_then(|node| mirror.of(NODES).named(node));
    let node = node.ok_or_else(|| format!("the node of {name} is gone"))?;
    let mut recorded = members(&record["nodeTopologyLabels"]);
    recorded.sort_unstable();
    let labels = wanted.labels().into_iter().map(|key| (key, node.label(key)));
    expect(format_args!("labels of {name}"), recorded, labels.collect())?;
    let annotations = wanted.annotations.iter();
    let annotations = annotations.filter_map(|key| Some((*key, pod.annotations()[*key].as_str()?)));
    let recorded = members(&record["annotations"]);
    expect(
        format_args!("annotations of {name}"),
        recorded,
        annotations.collect(),
    )
}

fn members(value: &Value) -> Vec<(&str, &str)> {
    pairs(value).map(|(key, value)| (key, text(value))).collect()
}
