//! Oracles of BroadcastJobs, written from their specification.

mod end;
mod facts;
mod pods;
mod status;

use super::start::JOBS;
use crate::rules::pod_writes;
use crate::rules::prelude::*;
use crate::subjects::nodes::OnNodes;

/// What judges the BroadcastJob of a scenario.
#[derive(Default)]
pub struct BroadcastJobOracles(OnNodes);

impl Oracles for BroadcastJobOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        let verdict = self.judge_other(write, mirror);
        let succession = self.0.judge(write, mirror);
        verdict
            .or(succession)
            .or_else(|| pods::judge(write, mirror))
            .or_else(|| status::judge(write, mirror))
    }

    fn judge_other(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        pod_writes::judge_pods(write, mirror, JOBS)
    }

    fn unfinished(&self, mirror: &Mirror, _: Timestamp, _: &Value) -> Result<(), String> {
        // One with a time to live may be gone.
        mirror
            .only(JOBS)
            .map_or(Ok(()), |job| end::unfinished(job, mirror))
    }

    fn judge_sent(&mut self, write: &Write<'_>, _: &Mirror) -> Option<Violation> {
        self.0.judge_sent(write, super::SUBJECT.component)
    }
}
