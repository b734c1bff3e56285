//! The state that must be reached after the last edit and the last fault.

use super::super::start::{MARKERS, NAMES, PROBES, condition};
use super::known::{Probe, has_probe, is_probed, probes, results};
use crate::rules::prelude::*;

/// What is not yet as it should be.
pub fn unfinished(mirror: &Mirror) -> Result<(), String> {
    lists(mirror)?;
    markers(mirror)?;
    pods(mirror)
}

/// Each node has a list, with what markers want of its pods.
fn lists(mirror: &Mirror) -> Result<(), String> {
    for node in mirror.of(NODES).now() {
        let Some(list) = mirror.of(PROBES).named(&node.name) else {
            return Err(format!("node {} has no NodePodProbe", node.name));
        };
        let (has, wants) = (probes(list), wanted(mirror, &node.name));
        wrong!(has != wants => "node {} probes {has:?}, not {wants:?}", node.name);
    }
    Ok(())
}

/// The probes that there must be on a node.
fn wanted(mirror: &Mirror, node: &str) -> BTreeSet<Probe> {
    let pods = mirror.of(PODS).now();
    let pods = pods.filter(|pod| is_probed(pod) && pod.value()["spec"]["nodeName"] == node);
    let of_pod = |pod: &Object| {
        let uid = pod.uid.to_string();
        let all = mirror.of(MARKERS).now().flat_map(|marker| {
            let probes = items(&marker.value()["spec"]["probes"]);
            probes.map(|probe| format!("{}#{}", marker.name, text(&probe["name"])))
        });
        all.map(|name| (uid.clone(), name)).collect::<Vec<_>>()
    };
    pods.flat_map(|pod| of_pod(pod)).collect()
}

/// Markers that are deleted are gone, and the others report their pods.
fn markers(mirror: &Mirror) -> Result<(), String> {
    let matched = mirror.of(PODS).now().filter(|pod| is_probed(pod)).count();
    for marker in mirror.of(MARKERS).now() {
        wrong!(marker.is_going() => "{} is still being deleted", marker.name);
        let (metadata, status) = (&marker.value()["metadata"], &marker.value()["status"]);
        wrong!(
            status["matchedPods"].as_u64() != Some(matched as u64)
                || status["observedGeneration"] != metadata["generation"]
                => "{} reports {status} of {matched} pods", marker.name);
    }
    Ok(())
}

/// Conditions, labels and annotations are what the lists report.
fn pods(mirror: &Mirror) -> Result<(), String> {
    for pod in mirror.of(PODS).now().filter(|pod| is_probed(pod)) {
        for (name, probe) in NAMES.into_iter().flat_map(|name| [(name, "x"), (name, "y")]) {
            let marker = mirror.of(MARKERS).named(name);
            if marker.is_some_and(|marker| has_probe(marker, probe)) {
                marked(mirror, pod, name, probe)?;
            }
        }
    }
    Ok(())
}

/// The pod is as the result of a probe says, and there is one.
fn marked(mirror: &Mirror, pod: &Object, marker: &str, probe: &str) -> Result<(), String> {
    let full = format!("{marker}#{probe}");
    let mut states = mirror.of(PROBES).now().flat_map(|list| results(list, pod));
    let state = states.find(|state| state["name"] == *full);
    let state = state.ok_or_else(|| format!("{} has no result of {full}", pod.name))?;
    let wants = match text(&state["state"]) {
        "Succeeded" => ["True", "good", "good"],
        "Failed" => ["False", "bad", ""],
        _ => ["False", "", ""],
    };
    let key = format!("{marker}-{probe}");
    let annotation = text(&pod.value()["metadata"]["annotations"][&key]);
    let has = [pod.state(&condition(marker, probe)), pod.label(&key), annotation];
    expect(
        format_args!("marks of {}: {full} is {state}", pod.name),
        has,
        wants,
    )
}
