//! AdvancedCronJobs whose jobs end, fail and are deleted, under managers whose clocks differ.

mod bugs;
mod edit;
mod generate;
mod oracles;
mod start;
mod user;

use crate::rules::prelude::*;
use edit::Edit;
use oracles::CronOracles;
use start::{CONTROLLER, CRON_JOBS, JOBS, NAME, Start};
use user::CronUser;

/// AdvancedCronJobs.
pub static SUBJECT: Subject = Subject {
    bugs: bugs::BUGS,
    name: NAME,
    component: Some(CONTROLLER),
    definitions: &[&kruise_api::advancedcronjob::KIND],
    resources: &[CRON_JOBS, JOBS, PODS],
    scenario: Some(generate::generate),
    clean: || vec![("AdvancedCronJob", clean())],
    is_release: |change| says(change, Edit::is_release),
    begin: |scenario| {
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
        begun(user, CronOracles::new(ahead))
    },
    ..Subject::PLAIN
};

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
    Scenario::of_edits(NAME, &start, edits)
}
