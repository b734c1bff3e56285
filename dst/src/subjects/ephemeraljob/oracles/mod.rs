//! Oracles of EphemeralJobs, written from their specification.

mod add;
mod end;
mod known;
mod report;

use super::start::{CONTROLLER, JOBS};
use crate::rules::prelude::*;

/// Least of writes of a job for a scenario to count.
const WRITES: u32 = 10;

/// What judges the EphemeralJob of a scenario.
pub struct EphemeralJobOracles;

impl Oracles for EphemeralJobOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        if write.component != CONTROLLER {
            return None;
        }
        add::judge(write, mirror).or_else(|| report::judge(write, mirror))
    }

    fn unfinished(&self, mirror: &Mirror, _: Timestamp, _: &Value) -> Result<(), String> {
        end::unfinished(mirror)
    }

    fn owns(&self, pod: &Object, _: &Mirror) -> bool {
        known::is_selected(pod)
    }

    fn counts(&self, counters: &Counters) -> bool {
        counters.written(JOBS.plural) >= WRITES
    }

    /// Each pod without the container gets it, and its start and its end are reported.
    fn writes_to_come(&self, mirror: &Mirror) -> Option<u32> {
        let Some(job) = mirror.of(JOBS).now().find(|job| !known::has_ended(job)) else {
            return Some(0);
        };
        let pods = known::pods(mirror).filter(|pod| known::container(pod, &job.uid) == known::Added::None);
        Some(u32::try_from(pods.count()).unwrap_or_default() * 2)
    }
}
