//! WorkloadSpreads.

mod bugs;
mod generate;
mod oracles;
mod start;
mod user;

use std::sync::atomic::AtomicBool;

use crate::rules::moments::Births;
use crate::rules::prelude::*;
use crate::subjects::cloneset::draft::NAME as CLONESET;
use crate::subjects::cloneset::edit::Edit as WorkloadEdit;
use crate::subjects::cloneset::start::{Policy, Start as Below};
use crate::subjects::podunavailablebudget::start::{APPS_STATEFULSETS, DEPLOYMENTS, REPLICASETS};
use oracles::SpreadOracles;
use start::{Edit, NAME, SPREADS, Start, Workload};

/// A WorkloadSpread above a CloneSet or a Deployment.
pub static SUBJECT: Subject = Subject {
    bugs: bugs::BUGS,
    name: NAME,
    component: Some("workloadspread-controller"),
    definitions: &[&kruise_api::workloadspread::KIND],
    resources: &[
        SPREADS,
        PODS,
        NODES,
        NAMESPACES,
        DEPLOYMENTS,
        REPLICASETS,
        APPS_STATEFULSETS,
        JOBS,
    ],
    uses_all_webhooks: true,
    scenario: Some(generate::generate),
    clean: || vec![("WorkloadSpread", clean())],
    is_release: |change| says(change, |edit: &Edit| matches!(edit, Edit::Create)),
    remembers_pods: false,
    begin: |scenario| {
        let start: Start = scenario.start(NAME)?;
        let refilled = Arc::new(AtomicBool::new(false));
        let user = user::SpreadUser {
            start: start.clone(),
            // Requests that fail until the end leave records behind for a while.
            // New pods get their subsets, whatever is refused to those that are there.
            refills: scenario.failing.is_none() && !start.refused,
            refilled: refilled.clone(),
        };
        let oracles = SpreadOracles {
            start,
            refilled,
            births: Births::default(),
            sent: BTreeMap::new(),
        };
        begun(user, oracles)
    },
    ..Subject::PLAIN
};

/// Pods of a CloneSet in three subsets are scaled, updated, deleted and evicted, and limits change, while nothing
/// fails.
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
    let starts = [(NAME, stored(&start)), (CLONESET, stored(&below))];
    Scenario::clean(starts, steps)
}
