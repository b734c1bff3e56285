//! Oracles of PersistentPodStates, written from their specification.
//!
//! They read the API server's own record. A write of the controller is judged by what it may have believed, and a new pod by
//! what the webhook may have known, whichever replica reviewed it.

mod births;
mod end;
mod known;
mod own;
mod record;
mod wanted;

use super::start::{CONTROLLER, STATES};
use crate::rules::prelude::*;
use crate::subjects::statefulset::oracles::spec::Gates;
use crate::subjects::statefulset::start::Start as Below;
use births::Births;
use known::Change;

/// Least of writes of PersistentPodStates for a scenario to count.
const WRITES: u32 = 8;

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
        never!(write, "pods, nodes and workloads are only read",
            write.resource != STATES.plural => "wrote {} {}", write.resource, write.name);
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
