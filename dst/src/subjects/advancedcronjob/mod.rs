//! AdvancedCronJobs whose jobs end, fail and are deleted, under managers whose clocks differ.

mod edit;
mod generate;
mod oracles;
mod start;
mod user;

use edit::Edit;
use oracles::CronOracles;
use serde::Deserialize;
use serde_json::Value;
use start::{CONTROLLER, CRON_JOBS, JOBS, NAME, Start};
use user::CronUser;

use crate::engine::{
    oracles::Oracles,
    resource::{PODS, Resource},
    scenario::{Action, Scenario},
    subject::{Subject, User},
};

/// AdvancedCronJobs.
pub struct AdvancedCronJob;

impl Subject for AdvancedCronJob {
    fn name(&self) -> &'static str {
        NAME
    }

    fn component(&self) -> Option<&'static str> {
        Some(CONTROLLER)
    }

    fn definitions(&self) -> Vec<Value> {
        vec![kruise_api::advancedcronjob::KIND.manifest("kruise-system")]
    }

    fn resources(&self) -> &'static [Resource] {
        &[CRON_JOBS, JOBS, PODS]
    }

    fn scenario(&self, seed: u64) -> Option<Scenario> {
        Some(generate::generate(seed))
    }

    fn clean_scenarios(&self) -> Vec<(&'static str, Scenario)> {
        vec![("AdvancedCronJob", clean())]
    }

    fn is_release(&self, change: &Value) -> bool {
        Edit::deserialize(change).is_ok_and(|edit| edit.is_release())
    }

    fn begin(&self, scenario: &Scenario) -> anyhow::Result<(Box<dyn User>, Box<dyn Oracles>)> {
        let start: Start = scenario.start(NAME)?;
        let skews = scenario
            .steps
            .iter()
            .filter_map(|step| match step.what.edit_of(NAME) {
                Some(Edit::Skew(seconds)) => Some(seconds),
                _ => None,
            });
        let ahead = skews.max().unwrap_or(0).max(0);
        let user = CronUser {
            start: start.clone(),
            ahead,
        };
        Ok((Box::new(user), Box::new(CronOracles::new(ahead))))
    }
}

/// Jobs are created every ten seconds while the policy and the history change, and nothing fails.
fn clean() -> Scenario {
    let start = Start {
        schedule: "@every 10s".into(),
        policy: "Forbid".into(),
        seconds: 3,
        ..Start::default()
    };
    let edits = [
        (40_000, Edit::Limits(0, 1)),
        (80_000, Edit::Policy("Replace".into())),
        (100_000, Edit::Paused(true)),
        (125_000, Edit::Paused(false)),
        (150_000, Edit::Limits(2, 0)),
        (190_000, Edit::Policy("Allow".into())),
        (230_000, Edit::Paused(true)),
    ];
    let steps = edits.map(|(at, edit)| (at, Action::edit(NAME, &edit)));
    let start = serde_json::to_value(start).unwrap_or_default();
    Scenario::clean([(NAME, start)], steps)
}
