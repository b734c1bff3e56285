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

use super::start::{BUDGETS, Start};
use crate::rules::prelude::*;
use follow::Follow;
use wanted::Unwanted;

/// Least of charges and counts for a scenario to count.
const WRITES: u32 = 15;

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
        let of_controller = write.component == super::start::CONTROLLER && write.resource == "pods";
        let [before, after] = write.pod(mirror).filter(|_| of_controller)?;
        (before.value()["spec"] != after.value()["spec"] || after.is_going() != before.is_going()).then(
            || Violation {
                oracle: "pods of a budget are only named",
                what: format!("{} changed {}", write.process, write.name),
            },
        )
    }

    fn judge_newborn(&mut self, mirror: &Mirror) -> Option<Violation> {
        let followed = self.follow.judge(mirror);
        followed.or_else(|| self.unwanted.judge(mirror))
    }

    fn unfinished(&self, mirror: &Mirror, _: Timestamp, _: &Value) -> Result<(), String> {
        wrong!(self.drains.load(Ordering::Relaxed) > 0 => "a node is being drained");
        end::unfinished(mirror, &self.start)
    }

    fn counts(&self, counters: &Counters) -> bool {
        counters.written(BUDGETS.plural) >= WRITES
    }

    /// Those of its workload are the most.
    fn writes_to_come(&self, _: &Mirror) -> Option<u32> {
        Some(0)
    }

    /// Pods that it named it finds in its caches.
    fn remembers_pods(&self) -> bool {
        false
    }
}
