//! A manager that is killed at any moment of a rollout does nothing twice.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use kruise_e2e::audit::MANAGER;
use kruise_e2e::wait;
use serde_json::{Value, json};

use crate::cluster::{audit_log, container, crash_manager, scenario_alone, web};

/// Pods of the set.
const PODS: u32 = 20;

/// Kills per test run; `KRUISE_E2E_CRASHES` sets another number.
fn crashes() -> u32 {
    std::env::var("KRUISE_E2E_CRASHES").map_or(5, |text| text.parse().unwrap())
}

#[test]
fn a_killed_manager_creates_deletes_and_restarts_no_pod_twice() {
    let Some(scenario) = scenario_alone("crash") else {
        return;
    };
    let random = RandomState::new();
    scenario.kubectl.apply(&web(PODS)).unwrap();
    scenario.until_status(&json!({"readyReplicas": PODS}));
    for run in 0..crashes() {
        let uids = scenario.uids();
        let moment = Duration::from_millis(random.hash_one(run) % 3000);
        let mut log = audit_log();
        // Even runs update in place, odd ones recreate.
        let image = format!("nginx:{run}-0");
        let in_place = run % 2 == 0;
        let patch = container(&image, &format!("new-{run}"));
        let patch = if in_place {
            keep_variable(&scenario.pods(), patch)
        } else {
            patch
        };
        scenario.patch(&patch);
        wait::observe_for(moment);
        crash_manager(scenario.kubectl.kubeconfig());
        scenario.until_status(&json!({"updatedReadyReplicas": PODS, "replicas": PODS}));

        let mut done: BTreeMap<(String, String), u32> = BTreeMap::new();
        for request in log.read_new(MANAGER).unwrap() {
            let changes_pod = request.resource == "pods" && request.is_write() && request.code < 300;
            if changes_pod && request.namespace == "crash" {
                *done.entry((request.verb, request.name)).or_default() += 1;
            }
        }
        let count = |verb: &str| {
            done.iter()
                .filter(|((of, _), _)| of == verb)
                .map(|(_, count)| count)
                .sum::<u32>()
        };
        let expected = if in_place { 0 } else { PODS };
        assert_eq!(
            (count("create"), count("delete")),
            (expected, expected),
            "run {run} at {moment:?}: {done:?}"
        );
        if in_place {
            assert_eq!(scenario.uids(), uids, "run {run} at {moment:?}");
            let patched = done.iter().filter(|((verb, _), _)| verb == "patch");
            assert!(
                patched.clone().all(|(_, count)| *count == 1),
                "run {run} at {moment:?}: {done:?}"
            );
            assert_eq!(patched.count(), PODS as usize, "run {run} at {moment:?}");
        }
    }
}

/// The patch with the variable that the pods have now: only the image changes.
fn keep_variable(pods: &[Value], mut patch: Value) -> Value {
    let current = pods
        .first()
        .unwrap()
        .pointer("/spec/containers/0/env/0/value")
        .unwrap()
        .clone();
    *patch
        .pointer_mut("/spec/template/spec/containers/0/env/0/value")
        .unwrap() = current;
    patch
}
