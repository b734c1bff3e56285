//! Oracles of PodProbeMarkers and NodePodProbes, written from their specification.

mod end;
mod known;
mod lists;
mod pods;

use super::start::{CONTROLLER, PROBES, TIDIER};
use crate::rules::prelude::*;

/// Least of writes of NodePodProbes for a scenario to count.
const WRITES: u32 = 15;

/// What judges the markers of a scenario.
pub struct PodProbeMarkerOracles;

impl Oracles for PodProbeMarkerOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        if ![CONTROLLER, TIDIER].contains(&write.component) {
            return None;
        }
        lists::judge(write, mirror).or_else(|| pods::judge(write, mirror))
    }

    fn unfinished(&self, mirror: &Mirror, _: Timestamp, _: &Value) -> Result<(), String> {
        end::unfinished(mirror)
    }

    fn counts(&self, counters: &Counters) -> bool {
        counters.written(PROBES.plural) >= WRITES
    }

    fn remembers_pods(&self) -> bool {
        false
    }
}
