//! Oracles of CloneSets, written from their specification and that of in-place updates.

mod availability;
mod end;
mod hooks;
mod names;
mod order;
mod partition;
mod progressing;
mod report;
mod size;
mod spec;

use super::draft::CLONESETS;
use super::start::Start;
use crate::rules::pod_writes;
use crate::rules::prelude::*;
use crate::rules::settled::{each_takes, rollout};
use names::Names;
use spec::Spec;

/// What judges the CloneSet of a scenario.
pub struct CloneSetOracles {
    rolls_back: bool,
    /// Does a hook hold its pods before they are updated?
    has_hook: bool,
    names: Names,
}

impl CloneSetOracles {
    /// For a CloneSet that starts like this.
    pub fn new(start: &Start) -> Self {
        Self {
            rolls_back: start.rolls_back,
            has_hook: start.hook,
            names: Names::default(),
        }
    }
}

impl Oracles for CloneSetOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        self.judge_other(write, mirror).or_else(|| {
            let known = spec::knowledge(write, mirror).filter(|_| write.resource == "pods")?;
            size::judge(write, &known, mirror, self.rolls_back)
                .or_else(|| partition::judge(write, &known, mirror, self.rolls_back))
                .or_else(|| order::judge(write, &known, mirror))
                .or_else(|| hooks::judge(write, &known, mirror))
                .or_else(|| availability::judge(write, &known, mirror))
        })
    }

    fn judge_other(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        pod_writes::judge(write, mirror, CLONESETS)
            .or_else(|| progressing::judge(write, mirror))
            .or_else(|| report::judge(write, mirror))
    }

    fn unfinished(&self, mirror: &Mirror, now: Timestamp, _: &Value) -> Result<(), String> {
        end::unfinished(mirror, now, self.rolls_back)
    }

    /// Those of the rollout.
    fn writes_to_come(&self, mirror: &Mirror) -> Option<usize> {
        Some(rollout(mirror, CLONESETS, each_takes(self.has_hook), |set| {
            let spec = Spec::of(set);
            let wanted = if spec.on_delete {
                0
            } else {
                spec.replicas - spec.partition
            };
            (wanted, spec.is_updated(mirror))
        }))
    }

    fn judge_sent(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        let creates = write.resource == "pods" && write.method == Method::Post;
        creates.then(|| self.names.sent(write, mirror)).flatten()
    }

    fn name_is_used(&mut self, name: &str) {
        self.names.is_used(name);
    }
}
