//! EphemeralJobs above pods that come, go and fail.

mod generate;
mod oracles;
mod start;
mod user;

use serde::Deserialize;
use serde_json::Value;
use start::{CONTROLLER, Edit, JOBS, NAME, Start};

use crate::engine::{
    oracles::Oracles,
    resource::{PODS, Resource},
    scenario::{Action, Scenario},
    subject::{Subject, User},
};

/// EphemeralJobs.
pub struct EphemeralJob;

impl Subject for EphemeralJob {
    fn name(&self) -> &'static str {
        NAME
    }

    fn component(&self) -> Option<&'static str> {
        Some(CONTROLLER)
    }

    fn definitions(&self) -> Vec<Value> {
        vec![kruise_api::ephemeraljob::KIND.manifest("kruise-system")]
    }

    fn resources(&self) -> &'static [Resource] {
        &[JOBS, PODS]
    }

    fn scenario(&self, seed: u64) -> Option<Scenario> {
        Some(generate::generate(seed))
    }

    fn clean_scenarios(&self) -> Vec<(&'static str, Scenario)> {
        vec![("EphemeralJob", clean())]
    }

    fn is_release(&self, change: &Value) -> bool {
        Edit::deserialize(change).is_ok_and(|edit| edit.is_release())
    }

    fn begin(&self, scenario: &Scenario) -> anyhow::Result<(Box<dyn User>, Box<dyn Oracles>)> {
        let start: Start = scenario.start(NAME)?;
        let user = user::EphemeralJobUser { start };
        Ok((Box::new(user), Box::new(oracles::EphemeralJobOracles)))
    }
}

/// Four jobs one after the other, with results that are mixed, a pause and pods that join, while nothing fails.
fn clean() -> Scenario {
    let start = Start {
        pods: 9,
        seconds: 3,
        held: true,
        ..Start::default()
    };
    let edits = [
        (8_000, Edit::Fails(true)),
        (14_000, Edit::Fails(false)),
        (50_000, Edit::Again),
        (55_000, Edit::Paused(true)),
        (65_000, Edit::Parallelism(3)),
        (66_000, Edit::Paused(false)),
        (68_000, Edit::Pod),
        (110_000, Edit::Replicas(Some(5))),
        (111_000, Edit::Again),
        (150_000, Edit::Again),
    ];
    let steps = edits.map(|(at, edit)| (at, Action::edit(NAME, &edit)));
    let start = serde_json::to_value(start).unwrap_or_default();
    Scenario::clean([(NAME, start)], steps)
}
