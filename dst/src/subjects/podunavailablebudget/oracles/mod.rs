//! Oracles of budgets.
//!
//! They follow the API server's own record of pods, budgets and workloads, change by change, whoever made them: users,
//! webhooks, plans, and controllers of the cluster. What they know of time is only how long anybody may lag behind.

mod charges;
mod end;
mod follow;
pub mod truth;
mod wanted;

use std::sync::atomic::{AtomicU32, Ordering};

use super::start::Start;
use crate::rules::prelude::*;
use follow::Follow;
use wanted::Unwanted;

/// What judges the budget of a scenario.
pub struct BudgetOracles {
    start: Start,
    /// Drains that are under way.
    drains: Arc<AtomicU32>,
    follow: Follow,
    unwanted: Unwanted,
}

impl BudgetOracles {
    /// For a budget that starts like this.
    pub fn new(start: Start, drains: Arc<AtomicU32>) -> Self {
        Self {
            follow: Follow::new(start.updates),
            unwanted: Unwanted::default(),
            start,
            drains,
        }
    }
}

impl Oracles for BudgetOracles {
    /// A controller of budgets changes no pod but for the name of its budget.
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        let [before, after] = write.pod(mirror)?;
        never!(write, "pods of a budget are only named",
            before.spec() != after.spec() || after.is_going() != before.is_going() => "it is more than a name");
        None
    }

    fn judge_newborn(&mut self, mirror: &Mirror) -> Option<Violation> {
        let followed = self.follow.judge(mirror);
        followed.or_else(|| self.unwanted.judge(mirror))
    }

    fn unfinished(&self, mirror: &Mirror, _: Timestamp, _: &Value) -> Result<(), String> {
        wrong!(self.drains.load(Ordering::Relaxed) > 0 => "a node is being drained");
        end::unfinished(mirror, &self.start)
    }

    /// Those of its workload are the most.
    fn writes_to_come(&self, _: &Mirror) -> Option<usize> {
        Some(0)
    }
}
