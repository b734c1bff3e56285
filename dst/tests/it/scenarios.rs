//! Random scenarios: of each subject always as many, however long they take.

use std::{collections::BTreeSet, time::Duration};

use kruise_dst::{
    engine::{campaign, enumerate, liveness},
    subjects::ALL,
};

/// Ends a test that does not end. A slow machine takes longer, and plays no less.
const PATIENCE: Duration = Duration::from_mins(30);
/// Of so many scenarios one is played twice, and both plays must be equal.
const TWICE: u64 = 5;
/// So many percent of the scenarios of a subject count: in the others too little happens.
const RICH: u64 = 60;

/// How many scenarios of each subject are played before each change. `kruise-dst run --of cloneset` plays more of them.
const QUOTAS: &[(&str, u64)] = &[
    ("cloneset", 25),
    ("statefulset", 20),
    ("daemonset", 20),
    ("sidecarset", 20),
    ("podunavailablebudget", 20),
    ("broadcastjob", 12),
    ("advancedcronjob", 12),
    ("ephemeraljob", 12),
    ("imagepulljob", 12),
    ("resourcedistribution", 12),
    ("persistentpodstate", 12),
    ("podprobemarker", 12),
    ("containerrecreaterequest", 12),
    ("workloadspread", 12),
    ("uniteddeployment", 12),
    ("sidecarterminator", 12),
    ("restart", 12),
];

/// Plays the scenarios of a subject's quota: none fails, and in most of them enough happens.
fn plays_its_quota(subject: &str) {
    let (_, quota) = QUOTAS.iter().find(|(name, _)| *name == subject).unwrap();
    let limits = campaign::Limits {
        time: PATIENCE,
        scenarios: *quota,
        failures: 1,
        twice: TWICE,
    };
    let seeds = ALL.seeds(Some(subject), 1).unwrap();
    let tally = campaign::run(ALL, seeds, 1, &limits).unwrap();
    println!("{tally}");
    assert!(tally.failures.is_empty(), "{tally}");
    assert!(tally.scenarios == *quota && tally.twice > 0, "{tally}");
    let rich: u64 = tally.counts.values().map(|counts| counts.rich).sum();
    assert!(rich * 100 >= quota * RICH, "too little happens: {tally}");
}

#[test]
fn every_subject_with_scenarios_of_its_own_has_a_quota() {
    let names = |of: Vec<&'static str>| of.into_iter().collect::<BTreeSet<_>>();
    let quotas = QUOTAS.iter().map(|(name, _)| *name).collect();
    assert_eq!(names(quotas), names(ALL.played()));
}

#[test]
fn no_limit_of_a_cloneset_is_broken_and_every_rollout_ends_whatever_fails() {
    plays_its_quota("cloneset");
}

#[test]
fn each_slot_has_one_pod_and_every_rollout_ends_whatever_fails() {
    plays_its_quota("statefulset");
}

#[test]
fn each_node_has_its_pod_and_every_rollout_ends_whatever_fails() {
    plays_its_quota("daemonset");
}

#[test]
fn sidecars_are_injected_and_upgraded_within_their_limits_whatever_fails() {
    plays_its_quota("sidecarset");
}

#[test]
fn no_disruption_takes_more_pods_than_a_budget_allows_and_every_budget_comes_to_rest() {
    plays_its_quota("podunavailablebudget");
}

#[test]
fn each_node_runs_the_pod_of_a_job_once_and_every_job_ends_whatever_fails() {
    plays_its_quota("broadcastjob");
}

#[test]
fn no_activation_has_two_jobs_and_the_latest_has_one_whatever_fails() {
    plays_its_quota("advancedcronjob");
}

#[test]
fn no_pod_gets_the_container_of_a_job_twice_and_every_job_ends_whatever_fails() {
    plays_its_quota("ephemeraljob");
}

#[test]
fn no_more_nodes_pull_than_a_job_allows_and_nothing_of_it_is_left_whatever_fails() {
    plays_its_quota("imagepulljob");
}

#[test]
fn foreign_objects_stay_and_every_selected_namespace_has_its_copy_whatever_fails() {
    plays_its_quota("resourcedistribution");
}

#[test]
fn pods_come_back_to_where_they_were_and_records_are_exact_whatever_fails() {
    plays_its_quota("persistentpodstate");
}

#[test]
fn nodes_have_the_probes_of_markers_and_pods_follow_results_whatever_fails() {
    plays_its_quota("podprobemarker");
}

#[test]
fn every_request_to_restart_containers_ends_and_leaves_nothing_on_its_pod_whatever_fails() {
    plays_its_quota("containerrecreaterequest");
}

#[test]
fn no_subset_gets_more_pods_than_its_limit_and_every_spread_comes_to_rest_whatever_fails() {
    plays_its_quota("workloadspread");
}

#[test]
fn workloads_share_the_replicas_and_those_of_others_stay_whatever_fails() {
    plays_its_quota("uniteddeployment");
}

#[test]
fn sidecars_end_after_the_main_containers_and_every_job_ends_as_these_did_whatever_fails() {
    plays_its_quota("sidecarterminator");
}

#[test]
fn no_more_pods_are_restarted_than_may_be_out_of_service_and_a_failure_is_the_last_whatever_fails() {
    plays_its_quota("restart");
}

/// Every seventeenth: `kruise-dst enumerate` takes all of them.
#[test]
fn a_crash_after_a_write_here_and_there_is_survived() {
    let mut clean = 0;
    for (name, scenario) in ALL.0.iter().flat_map(|one| (one.clean)()) {
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

/// Two of each subject: `kruise-dst liveness` takes more of them.
#[test]
fn work_goes_on_although_two_percent_of_all_requests_fail() {
    let count = QUOTAS.len() * 2;
    let seeds = ALL.seeds(None, 1).unwrap().take(count);
    let compared = liveness::run(ALL, seeds, 2, 2).unwrap();
    println!("{compared}");
    assert!(compared.violations.is_empty(), "{compared}");
    let failed: u32 = compared.scenarios.iter().map(|one| one.failed).sum();
    assert!(
        compared.scenarios.len() == count && failed > 100,
        "too little happened: {compared}"
    );
}
