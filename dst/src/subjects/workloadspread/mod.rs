//! WorkloadSpreads.

mod generate;
mod oracles;
mod start;
mod user;

use std::sync::{Arc, atomic::AtomicBool};

use serde::Deserialize;
use serde_json::Value;
use start::{CONTROLLER, Edit, JOBS, NAME, SPREADS, Start, Workload};

use super::{
    cloneset::{
        draft::NAME as CLONESET,
        edit::Edit as WorkloadEdit,
        start::{Policy, Start as Below},
    },
    podunavailablebudget::start::{APPS_STATEFULSETS, DEPLOYMENTS, REPLICASETS},
};
use crate::engine::{
    oracles::Oracles,
    resource::{NAMESPACES, NODES, PODS, Resource},
    scenario::{Action, Scenario},
    subject::{Subject, User},
};

/// A WorkloadSpread above a CloneSet or a Deployment.
pub struct WorkloadSpread;

impl Subject for WorkloadSpread {
    fn name(&self) -> &'static str {
        NAME
    }

    fn component(&self) -> Option<&'static str> {
        Some(CONTROLLER)
    }

    fn definitions(&self) -> Vec<Value> {
        vec![kruise_api::workloadspread::KIND.manifest("kruise-system")]
    }

    fn resources(&self) -> &'static [Resource] {
        &[
            SPREADS,
            PODS,
            NODES,
            NAMESPACES,
            DEPLOYMENTS,
            REPLICASETS,
            APPS_STATEFULSETS,
            JOBS,
        ]
    }

    fn uses_all_webhooks(&self) -> bool {
        true
    }

    fn scenario(&self, seed: u64) -> Option<Scenario> {
        Some(generate::generate(seed))
    }

    fn clean_scenarios(&self) -> Vec<(&'static str, Scenario)> {
        vec![("WorkloadSpread", clean())]
    }

    fn is_release(&self, change: &Value) -> bool {
        Edit::deserialize(change).is_ok_and(|edit| edit.is_release())
    }

    fn begin(&self, scenario: &Scenario) -> anyhow::Result<(Box<dyn User>, Box<dyn Oracles>)> {
        let start: Start = scenario.start(NAME)?;
        let refilled = Arc::new(AtomicBool::new(false));
        let user = user::SpreadUser {
            start: start.clone(),
            // Requests that fail until the end leave records behind for a while.
            // New pods get their subsets, whatever is refused to those that are there.
            refills: scenario.failing.is_none() && !start.refused,
            refilled: refilled.clone(),
        };
        Ok((
            Box::new(user),
            Box::new(oracles::SpreadOracles::new(start, refilled)),
        ))
    }
}

/// Pods of a CloneSet in three subsets are scaled, updated, deleted and evicted, and limits change, while nothing fails.
fn clean() -> Scenario {
    let limits = |all: [&str; 3]| all.map(str::to_owned).to_vec();
    let start = Start {
        workload: Workload::CloneSet,
        limits: limits(["2", "3", ""]),
        adaptive: 0,
        at_first: true,
        refused: false,
    };
    let workload = |edit: WorkloadEdit| Action::edit(CLONESET, &edit);
    let spread = |edit: Edit| Action::edit(NAME, &edit);
    let steps = [
        (10_000, workload(WorkloadEdit::Scale(7))),
        (20_000, spread(Edit::Empty(0, false))),
        (30_000, spread(Edit::Limits(limits(["3", "1", ""])))),
        (40_000, spread(Edit::Empty(1, true))),
        (50_000, workload(WorkloadEdit::Image(2))),
        (80_000, workload(WorkloadEdit::Scale(4))),
        (90_000, workload(WorkloadEdit::Scale(6))),
    ];
    let below = Below::plain(5, Policy::ReCreate);
    let value = |start: serde_json::Result<Value>| start.unwrap_or_default();
    let starts = [
        (NAME, value(serde_json::to_value(start))),
        (CLONESET, value(serde_json::to_value(below))),
    ];
    Scenario::clean(starts, steps)
}
