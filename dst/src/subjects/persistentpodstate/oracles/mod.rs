//! Oracles of PersistentPodStates, written from their specification.
//!
//! They read the API server's own record. A write of the controller is judged by what it may have believed, and a new pod by
//! what the webhook may have known, whichever replica reviewed it.

mod births;
mod end;
mod own;
mod record;
mod wanted;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kruise_sim::Method;
use serde_json::Value;

use births::Births;

use super::start::{CONTROLLER, STATES, WORKLOAD};
use crate::engine::oracles::{Counters, Mirror, Object, Oracles, Violation, Write};
use crate::subjects::{
    moments,
    statefulset::{
        oracles::spec::Gates,
        start::{STATEFULSETS, Start as Below},
    },
};

/// Least of writes of PersistentPodStates for a scenario to count.
const WRITES: u32 = 8;
/// How far anybody may lag behind what others write.
const LAG: SignedDuration = SignedDuration::from_secs(90);

/// What judges the PersistentPodStates of a scenario.
pub struct StateOracles {
    gates: Gates,
    births: Births,
}

impl StateOracles {
    /// For those above such a StatefulSet.
    pub fn new(below: &Below) -> Self {
        Self {
            gates: Gates::of(below),
            births: Births::default(),
        }
    }
}

impl Oracles for StateOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        if write.component != CONTROLLER || write.resource == "events" {
            return None;
        }
        if write.resource != STATES.plural {
            return Some(Violation {
                oracle: "pods, nodes and workloads are only read",
                what: format!("{} wrote {} {}", write.process, write.resource, write.name),
            });
        }
        let change = Change::of(write, mirror)?;
        if write.subresource == "status" {
            record::judge(&change, mirror, self.gates)
        } else {
            own::judge(&change, write.method, mirror)
        }
    }

    fn judge_newborn(&mut self, mirror: &Mirror) -> Option<Violation> {
        self.births.judge(mirror)
    }

    fn unfinished(&self, mirror: &Mirror, _: Timestamp, _: &Value) -> Result<(), String> {
        end::unfinished(mirror, self.gates)
    }

    fn counts(&self, counters: &Counters) -> bool {
        counters.written(STATES.plural) >= WRITES
    }

    /// Those of its workload are the most.
    fn writes_to_come(&self, _: &Mirror) -> Option<u32> {
        Some(0)
    }

    /// It writes no pods.
    fn remembers_pods(&self) -> bool {
        false
    }
}

/// A write of a PersistentPodState.
struct Change<'a> {
    /// What was stored before; none if it was created.
    before: Option<&'a Object>,
    /// What is stored now. Of one that was deleted, what was stored last.
    after: &'a Object,
}

impl<'a> Change<'a> {
    /// Nothing if the write changed nothing that is stored.
    fn of(write: &Write<'_>, mirror: &'a Mirror) -> Option<Self> {
        let states = mirror.of(STATES);
        let place = write.marks.of(STATES);
        let version = states.changes.get(place)?.version;
        let versions = states.changed_at(place)?;
        let at = versions.iter().position(|one| one.version == version)?;
        let before = at.checked_sub(1).and_then(|at| versions.get(at));
        Some(Self {
            before: before.filter(|_| write.method != Method::Post).map(|one| &**one),
            after: versions.get(at)?,
        })
    }

    /// The versions of an object that the writer may have taken for the newest.
    fn recent<'v>(&self, versions: &'v [Arc<Object>]) -> &'v [Arc<Object>] {
        moments::since(versions, before(self.after.at, LAG), self.after.version)
    }
}

/// A time so long before another one.
fn before(at: Timestamp, lag: SignedDuration) -> Timestamp {
    at.checked_sub(lag).unwrap_or(at)
}

/// Is it about the pods of the StatefulSet?
fn is_for_workload(state: &Object) -> bool {
    let target = &state.value()["spec"]["targetRef"];
    let is_of_group = |version: &str| version.starts_with(&format!("{}/", STATEFULSETS.group));
    target["kind"] == STATEFULSETS.kind
        && target["name"] == WORKLOAD
        && target["apiVersion"].as_str().is_some_and(is_of_group)
}

/// What is recorded of a pod; null if nothing is.
fn record<'s>(state: &'s Object, pod: &str) -> &'s Value {
    &state.value()["status"]["podStates"][pod]
}

/// Names and values of an object.
fn pairs(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let members = value.as_object().into_iter().flatten();
    members.map(|(key, value)| (key.as_str(), value))
}
