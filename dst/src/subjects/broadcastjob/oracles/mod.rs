//! Oracles of BroadcastJobs, written from their specification.

mod create;
mod delete;
mod end;
mod failure;
mod known;
mod report;

use super::start::{CONTROLLER, JOBS, Start};
use crate::rules::pod_writes;
use crate::rules::prelude::*;
use crate::subjects::nodes::{Names, Newest, judge_names, judge_succession};

/// Least of nodes at first for a scenario to count.
const LEAST: u8 = 5;

/// What judges the BroadcastJob of a scenario.
pub struct BroadcastJobOracles {
    start: Start,
    names: Names,
    newest: Newest,
}

impl BroadcastJobOracles {
    /// For a job that starts like this.
    pub fn new(start: Start) -> Self {
        Self {
            start,
            names: Names::new(),
            newest: Newest::new(),
        }
    }
}

impl Oracles for BroadcastJobOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        let verdict = pod_writes::judge_pods(write, mirror, JOBS);
        if write.component != CONTROLLER {
            return verdict;
        }
        let succession = judge_succession(write, mirror, &mut self.newest);
        verdict
            .or(succession)
            .or_else(|| create::judge(write, mirror))
            .or_else(|| failure::judge_creation(write, mirror))
            .or_else(|| delete::judge(write, mirror))
            .or_else(|| delete::judge_job(write, mirror))
            .or_else(|| report::judge(write, mirror))
    }

    fn unfinished(&self, mirror: &Mirror, _: Timestamp, _: &Value) -> Result<(), String> {
        end::unfinished(mirror)
    }

    fn judge_sent(&mut self, write: &Write<'_>, _: &Mirror) -> Option<Violation> {
        if write.component != CONTROLLER || write.resource != "pods" || write.method != Method::Post {
            return None;
        }
        judge_names(write, &mut self.names)
    }

    fn owns(&self, pod: &Object, mirror: &Mirror) -> bool {
        let job = mirror.of(JOBS).now().next();
        job.is_some_and(|job| pod.owner() == &*job.uid)
    }

    fn counts(&self, _: &Counters) -> bool {
        self.start.nodes >= LEAST
    }
}
