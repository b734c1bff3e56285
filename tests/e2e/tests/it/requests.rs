//! What a pod costs in requests, by the API server's own count.

use std::time::{Duration, Instant};

use kruise_e2e::audit::{AuditLog, Class, Counts, MANAGER};
use kruise_e2e::wait::{self, Patience};
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, container, manager_cpu_seconds, scenario, web};

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
    limit: Patience,
}

impl Bill {
    fn until_status(&self, fields: &Value) {
        self.scenario.until_status_within(self.limit, "web", fields);
    }

    /// Does something that takes until the status has these `fields`, and holds that what it requests for `pods`
    /// pods is within `bar` for each.
    fn hold(&mut self, what: &str, pods: u64, bar: u64, act: impl FnOnce(&Scenario), fields: &Value) {
        let (start, cpu) = (Instant::now(), manager_cpu_seconds());
        act(&self.scenario);
        self.until_status(fields);
        let (seconds, cpu) = (start.elapsed().as_secs_f64(), manager_cpu_seconds() - cpu);
        // Coalesced status and events come late.
        wait::observe_for(Duration::from_secs(2));
        let requests = self.log.read_new(MANAGER).unwrap();
        let (of_pods, others): (Vec<_>, Vec<_>) = requests
            .iter()
            .partition(|request| request.resource.starts_with("pods"));
        let (of_pods, others) = (Counts::of(of_pods), Counts::of(others));
        let counted = [&of_pods, &others].map(|counts| counts.total(Class::Counted));
        println!(
            "{what}, {pods} pods: {} for pods ({of_pods}), {} else ({others}), {seconds:.1} s, CPU {cpu:.2} s",
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
    let scenario = scenario("requests");
    let pods = replicas();
    let log = scenario.audit_log();
    let limit = LIMIT + Duration::from_secs(pods / 4);
    let mut bill = Bill { scenario, log, limit };
    let set = web(u32::try_from(pods).unwrap());
    let create = |scenario: &Scenario| {
        scenario.kubectl.apply(&set).unwrap();
    };
    let ready = json!({"readyReplicas": pods});
    bill.hold("create", pods, CREATE, create, &ready);
    let updated = json!({"updatedReadyReplicas": pods, "replicas": pods});
    let change = |patch: Value| move |scenario: &Scenario| scenario.patch(&patch);
    bill.hold(
        "in place",
        pods,
        IN_PLACE,
        change(container("nginx:2", "b")),
        &updated,
    );
    bill.hold(
        "recreate",
        pods,
        RECREATE,
        change(container("nginx:2", "c")),
        &updated,
    );
    let fewer = change(json!({"spec": {"replicas": 10}}));
    bill.hold(
        "scale down",
        pods - 10,
        SCALE_DOWN,
        fewer,
        &json!({"replicas": 10}),
    );
}
