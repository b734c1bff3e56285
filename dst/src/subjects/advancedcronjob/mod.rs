//! AdvancedCronJobs whose jobs end, fail and are deleted, under managers whose clocks differ.

mod bugs;
mod generate;
mod oracles;
mod start;
mod user;

use crate::rules::prelude::*;
use oracles::CronOracles;
use start::{CRON_JOBS, Edit, NAME, Start};
use user::CronUser;

/// AdvancedCronJobs.
pub static SUBJECT: Subject = Subject {
    bugs: bugs::BUGS,
    name: NAME,
    component: Some("advancedcronjob-controller"),
    definitions: &[&kruise_api::advancedcronjob::KIND],
    resources: &[CRON_JOBS, JOBS, PODS],
    scenario: Some(generate::generate),
    clean: || vec![("AdvancedCronJob", clean())],
    // A schedule that goes on has no end.
    is_release: |change| says(change, |edit: &Edit| matches!(edit, Edit::Paused(true))),
    owns: |pod, mirror| mirror.of(JOBS).now().any(|job| *job.uid == *pod.owner()),
    remembers_pods: false,
    least: &[(JOBS, 10)],
    begin: |scenario| {
        let start: Start = scenario.start(NAME)?;
        let edits = scenario.steps.iter().filter_map(|step| step.what.edit_of(NAME));
        let skews = edits.filter_map(|edit| match edit {
            Edit::Skew(seconds) => Some(seconds),
            _ => None,
        });
        let ahead = skews.max().unwrap_or(0).max(0);
        begun(CronUser { start, ahead }, CronOracles::new(ahead))
    },
    ..Subject::PLAIN
};

/// Jobs are created every ten seconds while the policy and the history change, and nothing fails.
fn clean() -> Scenario {
    let start = Start {
        schedule: "@every 10s".into(),
        policy: "Forbid".into(),
        seconds: 3,
        fails: false,
        limits: (3, 1),
        deadline: None,
        ttl: None,
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
