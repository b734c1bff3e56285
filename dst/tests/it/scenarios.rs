//! Random scenarios: always as many, however long they take.

use std::{collections::BTreeMap, time::Duration};

use kruise_dst::{
    engine::{
        campaign, enumerate, liveness,
        play::{Keep, play},
        subject::{Subject, Subjects},
    },
    subjects::ALL,
};

/// Scenarios that are played before each change, whatever the speed of a machine, unless told otherwise.
const SCENARIOS: u64 = 300;
/// And further ones of each of some subjects, from another seed on.
const OF_A_SUBJECT: u64 = 12;
const FURTHER: u64 = 1_001;
/// Ends a run that does not end. A slow machine takes longer, and plays no less.
const PATIENCE: Duration = Duration::from_mins(30);

/// `KRUISE_DST_SECONDS` plays as many as fit into that time.
fn limits() -> campaign::Limits {
    let given = std::env::var("KRUISE_DST_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok());
    campaign::Limits {
        of: None,
        time: given.map_or(PATIENCE, Duration::from_secs),
        scenarios: given.map_or(SCENARIOS, |_| u64::MAX),
        failures: 1,
        once: false,
    }
}

/// Plays scenarios of one subject: none fails, and in some of them something happens.
fn every_one_passes(subject: &str) -> anyhow::Result<()> {
    let limits = campaign::Limits {
        of: Some(subject.into()),
        time: PATIENCE,
        scenarios: OF_A_SUBJECT,
        failures: 1,
        once: false,
    };
    let tally = campaign::run(ALL, FURTHER, 2, limits)?;
    println!("{tally}");
    assert!(tally.failures.is_empty(), "{tally}");
    // Some subjects never make a hundred writes. Users and faults must have done something.
    assert!(tally.scenarios > 0 && tally.edits > 0, "{tally}");
    assert!(tally.fired.len() >= 3 || tally.scenarios < 10, "{tally}");
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
    every_one_passes("podunavailablebudget").unwrap();
}

/// Two subjects that draw alike take each other's seeds, and one of them is never played.
#[test]
fn every_subject_with_scenarios_of_its_own_has_a_hundredth_of_the_seeds_at_least() {
    const SEEDS: u64 = 2_000;
    let mut owned = BTreeMap::new();
    for seed in 1..=SEEDS {
        let (owner, _) = ALL.generate(seed).unwrap();
        *owned.entry(owner.name()).or_insert(0) += 1;
    }
    let draws = |one: &&dyn Subject| (1..=SEEDS).any(|seed| one.scenario(seed).is_some());
    for one in ALL.0.iter().copied().filter(draws) {
        let count = owned.get(one.name()).copied().unwrap_or(0);
        assert!(count >= SEEDS / 100, "{}: {count}; {owned:?}", one.name());
    }
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
    every_one_passes("advancedcronjob").unwrap();
}

/// `kruise-dst run --of ephemeraljob` takes more of them.
#[test]
fn no_pod_gets_the_container_of_a_job_twice_and_every_job_ends_whatever_fails() {
    every_one_passes("ephemeraljob").unwrap();
}

/// `kruise-dst run --of imagepulljob` takes more of them.
#[test]
fn no_more_nodes_pull_than_a_job_allows_and_nothing_of_it_is_left_whatever_fails() {
    every_one_passes("imagepulljob").unwrap();
}

/// `kruise-dst run --of persistentpodstate` takes more of them.
#[test]
fn pods_come_back_to_where_they_were_and_records_are_exact_whatever_fails() {
    every_one_passes("persistentpodstate").unwrap();
}

/// `kruise-dst run --of podprobemarker` takes more of them.
#[test]
fn nodes_have_the_probes_of_markers_and_pods_follow_results_whatever_fails() {
    every_one_passes("podprobemarker").unwrap();
}

/// `kruise-dst run --of containerrecreaterequest` takes more of them.
#[test]
fn every_request_to_restart_containers_ends_and_leaves_nothing_on_its_pod_whatever_fails() {
    every_one_passes("containerrecreaterequest").unwrap();
}

/// `kruise-dst run --of workloadspread` takes more of them.
#[test]
fn no_subset_gets_more_pods_than_its_limit_and_every_spread_comes_to_rest_whatever_fails() {
    every_one_passes("workloadspread").unwrap();
}

/// `kruise-dst run --of resourcedistribution` takes more of them.
#[test]
fn foreign_objects_stay_and_every_selected_namespace_has_its_copy_whatever_fails() {
    every_one_passes("resourcedistribution").unwrap();
}

/// `kruise-dst run --of uniteddeployment` takes more of them.
#[test]
fn workloads_share_the_replicas_and_those_of_others_stay_whatever_fails() {
    every_one_passes("uniteddeployment").unwrap();
}

/// `kruise-dst run --of sidecarterminator` takes more of them.
#[test]
fn sidecars_end_after_the_main_containers_and_every_job_ends_as_these_did_whatever_fails() {
    every_one_passes("sidecarterminator").unwrap();
}

/// `kruise-dst run --of restart` takes more of them.
#[test]
fn no_more_pods_are_restarted_than_may_be_out_of_service_and_a_failure_is_the_last_whatever_fails() {
    every_one_passes("restart").unwrap();
}

/// Every seventeenth: `kruise-dst enumerate` takes all of them.
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
