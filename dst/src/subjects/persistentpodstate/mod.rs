//! A PersistentPodState above a StatefulSet of Kubernetes whose pods are deleted and scaled away, on nodes of two pools.

mod generate;
mod oracles;
mod start;
mod user;

use serde_json::Value;
use start::{APPS_STATEFULSETS, CONTROLLER, Edit, NAME, STATES, Start};

use crate::engine::{
    oracles::Oracles,
    resource::{NODES, PODS, Resource},
    scenario::{Action, Scenario, Step},
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
        &[STATES, PODS, NODES, APPS_STATEFULSETS]
    }

    fn scenario(&self, seed: u64) -> Option<Scenario> {
        generate::generate(seed)
    }

    fn clean_scenarios(&self) -> Vec<(&'static str, Scenario)> {
        vec![("PersistentPodState", clean())]
    }

    fn is_release(&self, _: &Value) -> bool {
        false
    }

    fn begin(&self, scenario: &Scenario) -> anyhow::Result<(Box<dyn User>, Box<dyn Oracles>)> {
        let start: Start = scenario.start(NAME)?;
        let user = user::PersistentPodStateUser { start };
        Ok((Box::new(user), Box::new(oracles::PersistentPodStateOracles)))
    }
}

/// Pods that are deleted and scaled away, to zero too, while nothing fails.
fn clean() -> Scenario {
    let edits = [
        (10_000, Edit::Delete(0)),
        (20_000, Edit::Scale(1)),
        (35_000, Edit::Scale(4)),
        (50_000, Edit::Scale(0)),
        (51_000, Edit::Scale(3)),
        (65_000, Edit::Keep(true)),
        (66_000, Edit::Scale(0)),
        (85_000, Edit::Scale(2)),
        (95_000, Edit::Keep(false)),
    ];
    let steps = edits.map(|(at, edit)| Step {
        at,
        what: Action::edit(NAME, &edit),
    });
    let start = Start::default();
    Scenario {
        seed: 1,
        bug: None,
        failing: None,
        brief: false,
        managers: 1,
        subjects: [(NAME.to_owned(), serde_json::to_value(start).unwrap_or_default())].into(),
        steps: steps.into(),
    }
}
