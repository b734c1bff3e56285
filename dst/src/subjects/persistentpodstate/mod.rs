//! A PersistentPodState above a StatefulSet, which users create or annotations of the StatefulSet ask for, on nodes that get
//! their zones a while after they have registered.

mod generate;
mod oracles;
mod start;
mod user;

use serde::Deserialize;
use serde_json::Value;
use start::{CONTROLLER, Edit, Keys, NAME, STATES, Start};

use super::{
    podunavailablebudget::start::{APPS_STATEFULSETS, DEPLOYMENTS, REPLICASETS},
    statefulset::{
        edit::Edit as WorkloadEdit,
        start::{NAME as STATEFULSET, Start as Below},
    },
};
use crate::engine::{
    oracles::Oracles,
    resource::{NAMESPACES, NODES, PODS, Resource},
    scenario::{Action, PodAction, Scenario},
    subject::{Subject, User},
};

/// PersistentPodStates.
pub struct PersistentPodState;

impl Subject for PersistentPodState {
    fn name(&self) -> &'static str {
        NAME
    }

    fn component(&self) -> Option<&'static str> {
        Some(CONTROLLER)
    }

    fn definitions(&self) -> Vec<Value> {
        vec![kruise_api::persistentpodstate::KIND.manifest("kruise-system")]
    }

    fn resources(&self) -> &'static [Resource] {
        &[
            STATES,
            PODS,
            NODES,
            NAMESPACES,
            DEPLOYMENTS,
            REPLICASETS,
            APPS_STATEFULSETS,
        ]
    }

    fn uses_all_webhooks(&self) -> bool {
        true
    }

    fn scenario(&self, seed: u64) -> Option<Scenario> {
        Some(generate::generate(seed))
    }

    fn clean_scenarios(&self) -> Vec<(&'static str, Scenario)> {
        vec![("PersistentPodState", clean())]
    }

    fn is_release(&self, change: &Value) -> bool {
        Edit::deserialize(change).is_ok_and(|edit| edit.is_release())
    }

    fn begin(&self, scenario: &Scenario) -> anyhow::Result<(Box<dyn User>, Box<dyn Oracles>)> {
        let start: Start = scenario.start(NAME)?;
        let below: Below = scenario.start(STATEFULSET)?;
        let user = user::StateUser { start };
        Ok((Box::new(user), Box::new(oracles::StateOracles::new(&below))))
    }
}

/// Pods are deleted, updated and scaled away, to zero too; then annotations ask for the records, and for none. Nothing fails.
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
    let value = |start: serde_json::Result<Value>| start.unwrap_or_default();
    let starts = [
        (NAME, value(serde_json::to_value(start))),
        (STATEFULSET, value(serde_json::to_value(below))),
    ];
    Scenario::clean(starts, steps)
}
