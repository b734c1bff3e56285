//! The state that must be reached after the last edit and the last fault.

use std::collections::BTreeSet;

use super::known::{Probe, has_probe, is_probed, items, probes, text};
use crate::engine::oracles::{Mirror, NODES, Object, PODS};
use crate::subjects::podprobemarker::start::{MARKERS, NAMES, PROBES, condition};

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
        if has != wants {
            return Err(format!("node {} probes {has:?}, not {wants:?}", node.name));
        }
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
        if marker.is_going() {
            return Err(format!("{} is still being deleted", marker.name));
        }
        let (metadata, status) = (&marker.value()["metadata"], &marker.value()["status"]);
        if status["matchedPods"].as_u64() != Some(matched as u64)
            || status["observedGeneration"] != metadata["generation"]
        {
            return Err(format!("{} reports {status} of {matched} pods", marker.name));
        }
    }
    Ok(())
}

/// Conditions, labels and annotations are what the lists report.
fn pods(mirror: &Mirror) -> Result<(), String> {
    for pod in mirror.of(PODS).now().filter(|pod| is_probed(pod)) {
        for name in NAMES {
            let Some(marker) = mirror.of(MARKERS).named(name) else {
                continue;
            };
            for probe in ["x", "y"] {
                if has_probe(marker, probe) {
                    marked(mirror, pod, name, probe)?;
                }
            }
        }
    }
    Ok(())
}

/// The pod is as the result of a probe says, and there is one.
fn marked(mirror: &Mirror, pod: &Object, marker: &str, probe: &str) -> Result<(), String> {
    let full = format!("{marker}#{probe}");
    let lists = mirror.of(PROBES).now();
    let statuses = lists.flat_map(|list| items(&list.value()["status"]["podProbeStatuses"]));
    let of_pod = statuses.filter(|status| status["uid"] == *pod.uid);
    let mut states = of_pod.flat_map(|status| items(&status["probeStates"]));
    let Some(state) = states.find(|state| state["name"] == *full) else {
        return Err(format!("{} has no result of {full}", pod.name));
    };
    let (status, label, annotation) = match state["state"].as_str() {
        Some("Succeeded") => ("True", "good", "good"),
        Some("Failed") => ("False", "bad", ""),
        _ => ("False", "", ""),
    };
    let key = format!("{marker}-{probe}");
    let has = (
        pod.state(&condition(marker, probe)).to_owned(),
        pod.label(&key).to_owned(),
        text(&pod.value()["metadata"]["annotations"][&key]),
    );
    let wants = (status.to_owned(), label.to_owned(), annotation.to_owned());
    if has == wants {
        return Ok(());
    }
    Err(format!(
        "{}: {full} is {}, and its marks are {has:?}",
        pod.name, state["state"]
    ))
}
