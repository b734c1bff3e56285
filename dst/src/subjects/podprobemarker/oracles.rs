//! Oracles of PodProbeMarkers and NodePodProbes, written from their specification.

use super::start::{MARKERS, NAMES, PROBES, condition};
use crate::rules::belief::Seen;
use crate::rules::prelude::*;
use crate::rules::settled::observed;

/// The component of the controller of NodePodProbes.
const TIDIER: &str = "NodePodProbe-controller";

/// A probe of a pod on a node: uid of the pod, `marker#probe`.
type Probe = (String, String);

/// What judges the markers of a scenario.
pub struct PodProbeMarkerOracles;

impl Oracles for PodProbeMarkerOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        listed(write, mirror).or_else(|| marked(write, mirror))
    }

    fn judge_other(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        let is_its = write.component == TIDIER;
        is_its.then(|| self.judge(write, mirror)).flatten()
    }

    fn unfinished(&self, mirror: &Mirror, _: Timestamp, _: &Value) -> Result<(), String> {
        for node in mirror.of(NODES).now() {
            let listed = mirror.of(PROBES).named(&node.name);
            let listed = listed.ok_or_else(|| format!("node {} has no NodePodProbe", node.name))?;
            expect(
                format_args!("probes of node {}", node.name),
                probes(listed),
                wanted(mirror, &node.name),
            )?;
        }
        let matched = mirror.of(PODS).now().filter(|pod| is_probed(pod)).count() as u64;
        for marker in mirror.of(MARKERS).now() {
            wrong!(marker.is_going() => "{} is still being deleted", marker.name);
            observed(marker)?;
            let reported = marker.status()["matchedPods"].as_u64();
            expect(format_args!("pods of {}", marker.name), reported, Some(matched))?;
        }
        for pod in mirror.of(PODS).now().filter(|pod| is_probed(pod)) {
            for (name, probe) in NAMES.into_iter().flat_map(|name| [(name, "x"), (name, "y")]) {
                let marker = mirror.of(MARKERS).named(name);
                if marker.is_some_and(|marker| has_probe(marker, probe)) {
                    has_marks(mirror, pod, name, probe)?;
                }
            }
        }
        Ok(())
    }
}

/// *"Exactly the probes of the marker, and nothing of others is lost."*
fn listed(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    let [before, after] = write.both(mirror, PROBES).filter(|_| write.changes(PROBES))?;
    let (had, has) = (probes(before), probes(after));
    for (uid, name) in had.difference(&has) {
        let must_be_wanted = |(marker, probe)| Seen::must_be(&marker, |one| wants(one, probe));
        never!(write, "no probe that is wanted is lost",
            write.sees(mirror, PODS, uid).must_be(is_probed)
                && markers(write, mirror, name).any(must_be_wanted) => "{uid} lost {name}");
    }
    for (uid, name) in has.difference(&had) {
        let may_be_wanted = |(marker, probe)| Seen::may_be(&marker, |one| wants(one, probe));
        never!(write, "tidying adds nothing", write.component == TIDIER => "{uid} got {name}");
        never!(write, "a marker that is deleted probes nothing",
            !markers(write, mirror, name).any(may_be_wanted) => "{uid} got {name}");
    }
    None
}

/// *"Pods follow results."* Each condition of a pod that a write changes is a result that somebody may have read.
fn marked(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    let [before, after] = write
        .both(mirror, PODS)
        .filter(|_| write.resource == PODS.plural)?;
    for condition in items(&after.status()["conditions"]) {
        let (kind, status) = (text(&condition["type"]), text(&condition["status"]));
        if !kind.contains(".example/") || before.state(kind) == status {
            continue;
        }
        let name = kind.replace(".example/", "#");
        let reports = |list: &Object| {
            let mut states = results(list, after).filter(|state| state["name"] == *name);
            states.any(|state| (state["state"] == "Succeeded") == (status == "True"))
        };
        let was_reported = write.sees_all(mirror, PROBES).any(|list| list.may_be(reports));
        never!(write, "conditions are results", !was_reported => "{kind} is {status}");
    }
    None
}

/// The probes that there must be on a node.
fn wanted(mirror: &Mirror, node: &str) -> BTreeSet<Probe> {
    let markers: Vec<_> = mirror.of(MARKERS).now().collect();
    let names: Vec<String> = markers
        .iter()
        .flat_map(|marker| items(&marker.spec()["probes"]).map(|probe| (&marker.name, text(&probe["name"]))))
        .map(|(marker, probe)| format!("{marker}#{probe}"))
        .collect();
    let pods = mirror.of(PODS).now();
    let pods = pods.filter(|pod| is_probed(pod) && pod.spec()["nodeName"] == node);
    pods.flat_map(|pod| names.iter().map(|name| (pod.uid.to_string(), name.clone())))
        .collect()
}

/// The pod is as the result of a probe says, and there is one.
fn has_marks(mirror: &Mirror, pod: &Object, marker: &str, probe: &str) -> Result<(), String> {
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
    let has = [
        pod.state(&condition(marker, probe)),
        pod.label(&key),
        text(&pod.annotations()[&key]),
    ];
    expect(
        format_args!("marks of {}: {full} is {state}", pod.name),
        has,
        wants,
    )
}

/// The probes that a NodePodProbe lists.
fn probes(node: &Object) -> BTreeSet<Probe> {
    let probes = items(&node.spec()["podProbes"]).flat_map(|entry| {
        let uid = text(&entry["uid"]);
        items(&entry["probes"]).map(move |probe| (uid.to_owned(), text(&probe["name"]).to_owned()))
    });
    probes.collect()
}

/// The results that a NodePodProbe has of the probes of a pod.
fn results<'l>(list: &'l Object, pod: &Object) -> impl Iterator<Item = &'l Value> {
    let statuses = items(&list.status()["podProbeStatuses"]);
    let of_pod = statuses.filter(|status| status["uid"] == *pod.uid);
    of_pod.flat_map(|status| items(&status["probeStates"]))
}

/// Is the pod to be probed?
fn is_probed(pod: &Object) -> bool {
    let is_bound = !text(&pod.spec()["nodeName"]).is_empty();
    pod.is_active() && is_bound && pod.label("app") == "game" && pod.state("Initialized") == "True"
}

/// Does the marker have a probe of this name?
fn has_probe(marker: &Object, probe: &str) -> bool {
    named(&marker.spec()["probes"], probe).is_some()
}

fn wants(marker: &Object, probe: &str) -> bool {
    !marker.is_going() && has_probe(marker, probe)
}

/// All markers that ever had the name in that of a probe, and the rest of that.
fn markers<'m, 'n>(
    write: &Write<'_>,
    mirror: &'m Mirror,
    name: &'n str,
) -> impl Iterator<Item = (Seen<'m>, &'n str)> {
    let (marker, probe) = name.split_once('#').unwrap_or_default();
    let all = write.sees_all(mirror, MARKERS);
    all.filter(move |seen| seen.name() == marker)
        .map(move |seen| (seen, probe))
}
