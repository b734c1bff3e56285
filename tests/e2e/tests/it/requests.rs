//! What a pod costs in requests, by the API server's own count.

use std::time::Duration;

use kruise_e2e::audit::{AuditLog, Class, Counts, MANAGER};
use kruise_e2e::wait;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, audit_log, container, scenario_alone, web};

/// Requests for one pod, in hundredths.
const CREATE: u64 = 205;
const IN_PLACE: u64 = 305;
const RECREATE: u64 = 305;
const SCALE_DOWN: u64 = 102;
/// Everything that is not for one pod, from [`MANY`] pods on.
const ELSE: u64 = 10;
const MANY: u64 = 1000;

/// Pods of the set; `KRUISE_E2E_REPLICAS` sets another number.
fn replicas() -> u64 {
    std::env::var("KRUISE_E2E_REPLICAS").map_or(100, |text| text.parse().unwrap())
}

struct Bill {
    scenario: Scenario,
    log: AuditLog,
    limit: Duration,
}

impl Bill {
    fn until_status(&self, fields: &Value) {
        self.scenario.until_status_within(self.limit, "web", fields);
    }

    /// Holds that what was requested since the last call, for `pods` pods, is within `bar` for each.
    fn hold(&mut self, what: &str, pods: u64, bar: u64) {
        // Coalesced status and events come late.
        wait::observe_for(Duration::from_secs(2));
        let requests = self.log.read_new(MANAGER).unwrap();
        let (of_pods, others): (Vec<_>, Vec<_>) = requests
            .iter()
            .partition(|request| request.namespace == "requests" && request.resource.starts_with("pods"));
        let (of_pods, others) = (Counts::of(of_pods), Counts::of(others));
        let counted = [&of_pods, &others].map(|counts| counts.total(Class::Counted));
        println!(
            "{what}, {pods} pods: {} for pods ({of_pods}), {} else ({others})",
            counted[0], counted[1]
        );
        assert!(counted[0] * 100 <= bar * pods + 99, "{what}: {of_pods}");
        if pods >= MANY {
            assert!(counted[1] * 100 <= ELSE * pods, "{what}: {others}");
        }
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_hundred_pods_cost_no_more_requests_than_the_bars() {
    let scenario = scenario_alone("requests");
    let pods = replicas();
    let log = audit_log();
    let limit = LIMIT + Duration::from_secs(pods / 4);
    let mut bill = Bill { scenario, log, limit };
    bill.scenario
        .kubectl
        .apply(&web(u32::try_from(pods).unwrap()))
        .unwrap();
    bill.until_status(&json!({"readyReplicas": pods}));
    bill.hold("create", pods, CREATE);
    bill.scenario.patch(&container("nginx:2", "b"));
    bill.until_status(&json!({"updatedReadyReplicas": pods}));
    bill.hold("in place", pods, IN_PLACE);
    bill.scenario.patch(&container("nginx:2", "c"));
    bill.until_status(&json!({"updatedReadyReplicas": pods, "replicas": pods}));
    bill.hold("recreate", pods, RECREATE);
    bill.scenario.patch(&json!({"spec": {"replicas": 10}}));
    bill.until_status(&json!({"replicas": 10}));
    bill.hold("scale down", pods - 10, SCALE_DOWN);
}
