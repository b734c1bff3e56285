//! Oracles of WorkloadSpreads.
//!
//! They read the API server's own record of pods, workloads and WorkloadSpreads. New pods are judged when they are stored, whoever
//! created them and whichever replica reviewed them.

mod births;
mod end;
mod moves;
pub mod truth;

use std::sync::atomic::{AtomicBool, Ordering};

use super::start::{CONTROLLER, SPREADS, Start};
use crate::rules::prelude::*;
use births::Births;

/// Least of writes of the status for a scenario to count.
const WRITES: u32 = 25;

/// What judges the WorkloadSpread of a scenario.
pub struct SpreadOracles {
    start: Start,
    /// The workload was emptied and filled again.
    refilled: Arc<AtomicBool>,
    births: Births,
}

impl SpreadOracles {
    /// For a WorkloadSpread that starts like this.
    pub fn new(start: Start, refilled: Arc<AtomicBool>) -> Self {
        Self {
            births: Births::of(start.workload),
            start,
            refilled,
        }
    }
}

impl Oracles for SpreadOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        let of_controller = write.component == CONTROLLER && write.resource == "pods";
        of_controller
            .then(|| moves::judge(write, mirror, self.start.adaptive))
            .flatten()
    }

    fn judge_newborn(&mut self, mirror: &Mirror) -> Option<Violation> {
        self.births.judge(mirror)
    }

    fn judge_sent(&mut self, write: &Write<'_>, _: &Mirror) -> Option<Violation> {
        if write.resource == "pods" && write.method == Method::Post {
            let name = text(&write.body["metadata"]["name"]);
            self.births.sends(name, write.now);
        }
        None
    }

    fn unfinished(&self, mirror: &Mirror, _: Timestamp, _: &Value) -> Result<(), String> {
        if self.start.refused {
            // How pods are counted that nobody may put into a subset is not said.
            return Ok(());
        }
        end::unfinished(mirror, self.start.workload, self.refilled.load(Ordering::Relaxed))
    }

    fn counts(&self, counters: &Counters) -> bool {
        self.start.refused || counters.written(SPREADS.plural) >= WRITES
    }

    /// Those of its workload are the most.
    fn writes_to_come(&self, _: &Mirror) -> Option<u32> {
        Some(0)
    }

    /// What it wrote to pods it finds in its caches.
    fn remembers_pods(&self) -> bool {
        false
    }
}
