//! Requests that fail now and then delay a set by little.

use std::time::{Duration, Instant};

use kruise_e2e::policy::Policy;
use kruise_e2e::wait;
use serde_json::json;

use crate::cluster::{Scenario, container, scenario, web};

/// Pods of the set, which begins with [`FEW`].
const PODS: u32 = 200;
const FEW: u32 = 10;

/// Longer than this a busy machine does not delay what usually takes seconds. One lost answer used to cost up to a
/// minute.
const SLACK: Duration = Duration::from_secs(10);

/// What each step took: scale out, in-place update, recreation.
type Times = [Duration; 3];

/// Each step of a set's life while one in so many reviews of its pods fails.
fn times(scenario: &Scenario, policy: &Policy, one_in: u64) -> Times {
    let mut set = web(FEW);
    set["spec"]["updateStrategy"]["maxUnavailable"] = json!("50%");
    scenario.kubectl.apply(&set).unwrap();
    scenario.until_status(&json!({"readyReplicas": FEW}));
    policy.fail_one_in(one_in);
    let took = |patch, replicas: u32| {
        let begin = Instant::now();
        scenario.patch(&patch);
        scenario.until_status(
            &json!({"replicas": replicas, "readyReplicas": replicas, "updatedReadyReplicas": replicas}),
        );
        begin.elapsed()
    };
    let times = [
        took(json!({"spec": {"replicas": PODS}}), PODS),
        took(container("nginx:2", "b"), PODS),
        took(container("nginx:2", "c"), PODS),
    ];
    policy.fail_one_in(0);
    scenario.kubectl.run(&["delete", "clonesets", "web"]).unwrap();
    wait::until_true("the pods are gone", wait::QUIET, || {
        Ok(scenario.kubectl.list("pods", "app=web")?.is_empty())
    })
    .unwrap();
    times
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_policy_that_fails_some_reviews_delays_a_set_by_little() {
    let scenario = scenario("unreliable");
    let policy = Policy::start().unwrap();
    scenario
        .kubectl
        .apply(&policy.configuration("unreliable"))
        .unwrap();
    let calm = times(&scenario, &policy, 0);
    assert_eq!(policy.failed(), 0);
    for (one_in, factor) in [(50, 2), (10, 4)] {
        let failed = policy.failed();
        let unreliable = times(&scenario, &policy, one_in);
        let failed = policy.failed() - failed;
        println!("one in {one_in} reviews failed, {failed} in all: {unreliable:?} instead of {calm:?}");
        assert!(failed >= u64::from(PODS) / one_in, "{failed}");
        for (calm, unreliable) in calm.iter().zip(unreliable) {
            let most = *calm * factor + SLACK;
            assert!(
                unreliable <= most,
                "one in {one_in}: {unreliable:?} instead of {calm:?}"
            );
        }
    }
    scenario
        .kubectl
        .run(&["delete", "validatingwebhookconfigurations", "policy-unreliable"])
        .unwrap();
}
