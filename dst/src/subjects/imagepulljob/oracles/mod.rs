//! Oracles of ImagePullJobs and NodeImages, written from their specification.

mod copies;
mod end;
mod known;
mod nodes;
mod pulls;

use super::start::{CONTROLLER, JOBS, NODE_IMAGES, TIDIER};
use crate::rules::prelude::*;

/// Least of writes of nodes for a scenario to count.
const WRITES: u32 = 20;

/// What judges the jobs of a scenario.
#[derive(Default)]
pub struct ImagePullJobOracles {
    pulls: pulls::Pulls,
}

impl Oracles for ImagePullJobOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        if ![CONTROLLER, TIDIER].contains(&write.component) {
            return self.pulls.judge(write, mirror);
        }
        nodes::judge(write, mirror).or_else(|| copies::judge(write, mirror))
    }

    fn unfinished(&self, mirror: &Mirror, _: Timestamp, _: &Value) -> Result<(), String> {
        end::unfinished(mirror)
    }

    fn counts(&self, counters: &Counters) -> bool {
        counters.written(NODE_IMAGES.plural) >= WRITES
    }

    /// Each node is asked, and reports that it pulls and what comes of it.
    fn writes_to_come(&self, mirror: &Mirror) -> Option<u32> {
        let running = mirror.of(JOBS).now().filter(|job| !known::has_ended(job)).count();
        let nodes = mirror.of(NODE_IMAGES).now().count();
        Some(u32::try_from(running * nodes * 4).unwrap_or(u32::MAX))
    }

    fn remembers_pods(&self) -> bool {
        false
    }
}
