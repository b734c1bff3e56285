//! A PersistentPodState above a StatefulSet, which users create or annotations of the StatefulSet ask for, on nodes
//! that get their zones a while after they have registered.

mod bugs;
mod generate;
mod oracles;
mod start;
mod user;

use crate::rules::moments::Births;
use crate::rules::prelude::*;
use crate::subjects::podunavailablebudget::start::{APPS_STATEFULSETS, DEPLOYMENTS, REPLICASETS};
use crate::subjects::statefulset::edit::Edit as WorkloadEdit;
use crate::subjects::statefulset::oracles::spec::Gates;
use crate::subjects::statefulset::start::{NAME as STATEFULSET, Start as Below};
use oracles::StateOracles;
use start::{Edit, Keys, NAME, STATES, Start};

/// PersistentPodStates.
pub static SUBJECT: Subject = Subject {
    bugs: bugs::BUGS,
    name: NAME,
    component: Some("persistentpodstate-controller"),
    definitions: &[&kruise_api::persistentpodstate::KIND],
    resources: &[
        STATES,
        PODS,
        NODES,
        NAMESPACES,
        DEPLOYMENTS,
        REPLICASETS,
        APPS_STATEFULSETS,
    ],
    uses_all_webhooks: true,
    scenario: Some(generate::generate),
    clean: || vec![("PersistentPodState", clean())],
    // What is to be there in the end.
    is_release: |change| says(change, |edit: &Edit| matches!(edit, Edit::Create | Edit::Ask(..))),
    remembers_pods: false,
    least: &[(STATES, 8)],
    begin: |scenario| {
        let start: Start = scenario.start(NAME)?;
        let below: Below = scenario.start(STATEFULSET)?;
        let oracles = StateOracles {
            gates: Gates::of(&below),
            births: Births::default(),
        };
        begun(start, oracles)
    },
    ..Subject::PLAIN
};

/// Pods are deleted, updated and scaled away, to zero too; then annotations ask for the records, and for none.
/// Nothing fails.
fn clean() -> Scenario {
    let start = Start {
        required: Keys::Zone,
        preferred: Keys::Host,
        keeps: false,
        annotated: true,
        asked: false,
        at_first: true,
    };
    let below = Below {
        parallel: true,
        ..Below::plain(5)
    };
    let workload = |edit: WorkloadEdit| Action::edit(STATEFULSET, &edit);
    let state = |edit: Edit| Action::edit(NAME, &edit);
    let steps = [
        (10_000, Action::Pod(PodAction::Delete(1))),
        (20_000, workload(WorkloadEdit::Image(2))),
        (60_000, workload(WorkloadEdit::Scale(0))),
        (61_000, workload(WorkloadEdit::Scale(5))),
        (80_000, workload(WorkloadEdit::Scale(2))),
        (90_000, workload(WorkloadEdit::Scale(4))),
        (100_000, state(Edit::Delete)),
        (110_000, state(Edit::Ask(Keys::Host, Keys::Zone))),
        (120_000, state(Edit::Spoil(Keys::Zone))),
        (130_000, Action::Pod(PodAction::Delete(0))),
        (140_000, state(Edit::Withdraw)),
    ];
    let starts = [(NAME, stored(&start)), (STATEFULSET, stored(&below))];
    Scenario::clean(starts, steps)
}
