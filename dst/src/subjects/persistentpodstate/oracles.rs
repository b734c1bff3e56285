//! Oracles of PersistentPodStates, written from their specification.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use super::start::{APPS_STATEFULSETS, BROKER, CONTROLLER, STATES};
use crate::engine::oracles::{Counters, Mirror, NODES, Object, Oracles, PODS, Violation, Write};
use crate::subjects::nodes::POOL;

/// Least of reports for a scenario to count.
const WRITES: u32 = 8;
/// A report may be as old as this when it is sent: the next one waits for the one before.
const AGE: SignedDuration = SignedDuration::from_secs(10);

/// What judges the PersistentPodState of a scenario.
pub struct PersistentPodStateOracles;

fn records(state: &Object) -> Map<String, Value> {
    let records = state.value()["status"]["podStates"].as_object();
    records.cloned().unwrap_or_default()
}

/// Versions of the pods that have, or had, this name: one list for each of them.
fn named<'m>(mirror: &'m Mirror, name: &'m str) -> impl Iterator<Item = &'m Vec<Arc<Object>>> {
    let pods = mirror.of(PODS).objects.values();
    pods.filter(move |versions| versions.first().is_some_and(|pod| &*pod.name == name))
}

impl Oracles for PersistentPodStateOracles {
    /// *"A record is made when its pod is Ready"*, and *"is dropped once the pod is gone"*.
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        if write.component != CONTROLLER || write.resource != STATES.plural {
            return None;
        }
        let log = mirror.of(STATES);
        let place = write.marks.of(STATES);
        let version = log.changes.get(place)?.version;
        let versions = log.changed_at(place)?;
        let index = versions.iter().position(|object| object.version == version)?;
        let (before, after) = (versions.get(index.checked_sub(1)?)?, versions.get(index)?);
        let (before, after) = (records(before), records(after));
        let violation = |oracle, what: String| {
            let what = format!("{}: {what}", write.process);
            Some(Violation { oracle, what })
        };
        for (name, record) in &after {
            if before.get(name) == Some(record) {
                continue;
            }
            let was_ready = named(mirror, name).flatten().any(|pod| {
                pod.value()["spec"]["nodeName"] == record["nodeName"] && pod.state("Ready") == "True"
            });
            if !was_ready {
                let node = &record["nodeName"];
                return violation(
                    "records are of Ready pods",
                    format!("{name} on {node} never was Ready"),
                );
            }
        }
        let floor = write.sent.floors.of(PODS);
        for name in before.keys().filter(|name| !after.contains_key(*name)) {
            let long_ago = write.now - AGE;
            let runs = named(mirror, name).any(|versions| {
                let first = versions.first();
                let is_known = first.is_some_and(|pod| pod.version <= floor && pod.at <= long_ago);
                is_known && versions.last().is_some_and(|pod| !pod.gone)
            });
            if runs {
                return violation("pods that run are not forgotten", format!("{name} still runs"));
            }
        }
        None
    }

    /// *"Every Ready pod is recorded, and no pod that was scaled in."*
    fn unfinished(&self, mirror: &Mirror, _: Timestamp, _: &Value) -> Result<(), String> {
        let (Some(state), Some(set)) = (
            mirror.of(STATES).named(BROKER),
            mirror.of(APPS_STATEFULSETS).named(BROKER),
        ) else {
            return Ok(());
        };
        let replicas = set.value()["spec"]["replicas"].as_u64().unwrap_or(1);
        let records = records(state);
        for pod in mirror.of(PODS).now() {
            if pod.owner() != &*set.uid || !pod.is_active() || pod.state("Ready") != "True" {
                continue;
            }
            let record = records.get(&*pod.name);
            let record = record.ok_or_else(|| format!("{} is not recorded", pod.name))?;
            let node = pod.value()["spec"]["nodeName"].as_str().unwrap_or_default();
            if record["nodeName"] != node {
                return Err(format!("{} is on {node}, and recorded as {record}", pod.name));
            }
            let pool = mirror.of(NODES).named(node).map(|node| node.label(POOL));
            let recorded = record["nodeTopologyLabels"][POOL].as_str();
            if pool.is_some_and(|pool| recorded != Some(pool)) {
                return Err(format!("{node} is of pool {pool:?}, and recorded as {record}"));
            }
        }
        let spec = &state.value()["spec"];
        let keeps = spec["persistentPodStateRetentionPolicy"] == "WhenDeleted";
        for name in records.keys().filter(|_| !keeps) {
            let number = name.rsplit_once('-').and_then(|(_, number)| number.parse().ok());
            if number.is_none_or(|number: u64| number >= replicas) {
                return Err(format!("{name} is still recorded"));
            }
        }
        let generation = &state.value()["metadata"]["generation"];
        if state.value()["status"]["observedGeneration"] != *generation {
            return Err(format!("the status is not of generation {generation}"));
        }
        Ok(())
    }

    fn owns(&self, pod: &Object, mirror: &Mirror) -> bool {
        let set = mirror.of(APPS_STATEFULSETS).named(BROKER);
        set.is_some_and(|set| pod.owner() == &*set.uid)
    }

    fn counts(&self, counters: &Counters) -> bool {
        counters.written(STATES.plural) >= WRITES
    }

    fn remembers_pods(&self) -> bool {
        false
    }
}
