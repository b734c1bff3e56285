//! EphemeralJobs above pods that come, go and fail.

mod bugs;
mod generate;
mod oracles;
mod start;
mod user;

use crate::rules::prelude::*;
use start::{Edit, JOBS, NAME, Start};

/// EphemeralJobs.
pub static SUBJECT: Subject = Subject {
    bugs: bugs::BUGS,
    name: NAME,
    component: Some("ephemeraljob-controller"),
    definitions: &[&kruise_api::ephemeraljob::KIND],
    resources: &[JOBS, PODS],
    scenario: Some(generate::generate),
    clean: || vec![("EphemeralJob", clean())],
    is_release: |change| says(change, |edit: &Edit| matches!(edit, Edit::Paused(false))),
    owns: |pod, _| oracles::is_selected(pod),
    least: &[(JOBS, 10)],
    begin: |scenario| begun(scenario.start::<Start>(NAME)?, oracles::EphemeralJobOracles),
    ..Subject::PLAIN
};

/// Four jobs one after the other, with results that are mixed, a pause and pods that join, while nothing fails.
fn clean() -> Scenario {
    let start = Start {
        pods: 9,
        replicas: None,
        parallelism: 2,
        seconds: 3,
        deadline: None,
        ttl: None,
        held: true,
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
    Scenario::of_edits(NAME, &start, edits)
}
