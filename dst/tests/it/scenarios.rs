//! Random scenarios, as many as the time allows.

use std::time::Duration;

use kruise_dst::{
    engine::{
        campaign, enumerate, liveness,
        play::{Keep, play},
        subject::Subjects,
    },
    subjects::ALL,
};

/// Seeds that are played before each change, whatever the speed of a machine, unless told otherwise.
const SCENARIOS: u64 = 300;
/// And of these, with budgets.
const BUDGETS: u64 = 40;
/// And with schedules.
const SCHEDULES: u64 = 40;
/// And with ephemeral containers.
const ADDITIONS: u64 = 40;
/// And with copies in namespaces.
const COPIES: u64 = 40;
/// And with nodes that pull.
const PULLS: u64 = 40;
/// And with pods that come back to where they were.
const RECORDS: u64 = 40;
/// PodProbeMarkers.
const PROBES: u64 = 40;
/// And with containers that are restarted.
const RESTARTS: u64 = 40;

/// `KRUISE_DST_SECONDS` plays as many as fit into that time.
fn limits() -> campaign::Limits {
    let given = std::env::var("KRUISE_DST_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok());
    campaign::Limits {
        of: None,
        time: Duration::from_secs(given.unwrap_or(60)),
        scenarios: given.map_or(SCENARIOS, |_| u64::MAX),
        failures: 1,
        once: false,
    }
}

/// Plays scenarios of one subject: none fails, and those that show something are not left out.
fn every_one_passes(subject: &str, scenarios: u64) -> anyhow::Result<()> {
    let limits = campaign::Limits {
        of: Some(subject.into()),
        time: Duration::from_mins(1),
        scenarios,
        failures: 1,
        once: false,
    };
    let tally = campaign::run(ALL, 1, 2, limits)?;
    println!("{tally}");
    assert!(tally.failures.is_empty(), "{tally}");
    assert!(tally.rich > 0 || tally.scenarios < 10, "{tally}");
    Ok(())
}

#[test]
fn random_scenarios_keep_every_promise_and_end_where_they_should() {
    let tally = campaign::run(ALL, 1, 2, limits()).unwrap();
    println!("{tally}");
    assert!(tally.failures.is_empty() && tally.silent().is_empty(), "{tally}");
    // A run too short to show anything must not pass for one that did.
    assert!(tally.rich > 0 || tally.scenarios < 10, "{tally}");
}

/// `kruise-dst run --of podunavailablebudget` takes more of them.
#[test]
fn no_disruption_takes_more_pods_than_a_budget_allows_and_every_budget_comes_to_rest() {
    every_one_passes("podunavailablebudget", BUDGETS).unwrap();
}

/// A fingerprint that was noted once stays worth something when a subject is added.
#[test]
fn seeds_of_other_subjects_are_played_as_if_a_later_one_did_not_exist() {
    for seed in 1..=400 {
        let (owner, scenario) = ALL.generate(seed).unwrap();
        let mut expected = None;
        for left_out in ALL.0.iter().filter(|one| !one.is_always_watched()) {
            if left_out.name() == owner.name() {
                continue;
            }
            let others: Vec<_> = ALL
                .0
                .iter()
                .copied()
                .filter(|one| one.name() != left_out.name())
                .collect();
            let others = Subjects(others.leak());
            assert_eq!(
                others.generate(seed).unwrap().1,
                scenario,
                "{seed} without {}",
                left_out.name()
            );
            if seed % 200 == 1 {
                let hash = |subjects| play(subjects, &scenario, Keep::Hash).unwrap().hash;
                let expected = *expected.get_or_insert_with(|| hash(ALL));
                assert_eq!(hash(others), expected, "{seed} without {}", left_out.name());
            }
        }
    }
}

/// `kruise-dst run --of advancedcronjob` takes more of them.
#[test]
fn no_activation_has_two_jobs_and_the_latest_has_one_whatever_fails() {
    every_one_passes("advancedcronjob", SCHEDULES).unwrap();
}

/// `kruise-dst run --of ephemeraljob` takes more of them.
#[test]
fn no_pod_gets_the_container_of_a_job_twice_and_every_job_ends_whatever_fails() {
    every_one_passes("ephemeraljob", ADDITIONS).unwrap();
}

/// `kruise-dst run --of imagepulljob` takes more of them.
#[test]
fn no_more_nodes_pull_than_a_job_allows_and_nothing_of_it_is_left_whatever_fails() {
    every_one_passes("imagepulljob", PULLS).unwrap();
}

/// `kruise-dst run --of persistentpodstate` takes more of them.
#[test]
fn pods_come_back_to_where_they_were_and_records_are_exact_whatever_fails() {
    every_one_passes("persistentpodstate", RECORDS).unwrap();
}

/// `kruise-dst run --of podprobemarker` takes more of them.
#[test]
fn nodes_have_the_probes_of_markers_and_pods_follow_results_whatever_fails() {
    every_one_passes("podprobemarker", PROBES).unwrap();
}

/// `kruise-dst run --of containerrecreaterequest` takes more of them.
#[test]
fn every_request_to_restart_containers_ends_and_leaves_nothing_on_its_pod_whatever_fails() {
    every_one_passes("containerrecreaterequest", RESTARTS).unwrap();
}

/// Every seventeenth: `kruise-dst enumerate` takes all of them.
/// `kruise-dst run --of resourcedistribution` takes more of them.
#[test]
fn foreign_objects_stay_and_every_selected_namespace_has_its_copy_whatever_fails() {
    every_one_passes("resourcedistribution", COPIES).unwrap();
}

#[test]
fn a_crash_after_a_write_here_and_there_is_survived() {
    let mut clean = 0;
    for (name, scenario) in ALL.0.iter().flat_map(|one| one.clean_scenarios()) {
        let enumerated = enumerate::run(ALL, &scenario, 17, 2).unwrap();
        assert!(enumerated.writes > 30, "{name}: {}", enumerated.writes);
        assert!(
            enumerated.failures.is_empty(),
            "{name}: {:?}",
            enumerated.failures
        );
        clean += 1;
    }
    assert!(clean >= 2, "{clean}");
}

/// `kruise-dst liveness` takes more of them.
#[test]
fn work_goes_on_although_two_percent_of_all_requests_fail() {
    let compared = liveness::run(ALL, 1, 40, 2, 2).unwrap();
    println!("{compared}");
    assert!(compared.violations.is_empty(), "{compared}");
    let failed: u32 = compared.scenarios.iter().map(|one| one.failed).sum();
    assert!(
        compared.scenarios.len() == 40 && failed > 100,
        "too little happened: {compared}"
    );
}
