//! What a pod with a claim costs in requests, in an ordered set and in a parallel one, by the API server's own count.

use std::time::{Duration, Instant};

use kruise_e2e::audit::{AuditLog, Counts, Entry, MANAGER};
use kruise_e2e::wait::{self, Patience};
use serde_json::{Value, json};

use super::{SETS, db, parallel, rolling, template, with_claims};
use crate::claims::storage_class;
use crate::cluster::{LIMIT, Scenario, manager_cpu_seconds, scenario};

/// Writes to the pod and its claim, in hundredths.
const CREATE: u64 = 305;
const IN_PLACE: u64 = 305;
const RECREATE: u64 = 305;
const SCALE_DOWN: u64 = 102;

/// Replicas of the parallel set and of the ordered one; `KRUISE_E2E_REPLICAS` sets another number for both.
fn replicas() -> [u64; 2] {
    std::env::var("KRUISE_E2E_REPLICAS").map_or([60, 10], |text| [text.parse().unwrap(); 2])
}

/// A set of this name, whose pods have a claim each.
fn named(name: &str, mut set: Value, replicas: u64) -> Value {
    set["metadata"]["name"] = json!(name);
    set["spec"]["replicas"] = json!(replicas);
    set["spec"]["selector"]["matchLabels"]["app"] = json!(name);
    set["spec"]["template"]["metadata"]["labels"]["app"] = json!(name);
    with_claims(set, "host-path")
}

struct Bill {
    scenario: Scenario,
    log: AuditLog,
    /// Names of the sets and how many pods they have.
    sets: [(&'static str, u64); 2],
}

impl Bill {
    /// Changes both sets, waits until their status is as `fields` say of so many pods, and holds that writes for
    /// each pod and its claim were within `bar`.
    fn change(&mut self, what: &str, bar: u64, patch: &Value, fields: fn(u64) -> Value) {
        let start = Instant::now();
        let cpu = manager_cpu_seconds();
        for (name, _) in self.sets {
            self.scenario.kubectl.patch(SETS, name, patch).unwrap();
        }
        self.hold(what, bar, start, cpu, fields);
    }

    fn hold(&mut self, what: &str, bar: u64, start: Instant, cpu: f64, fields: fn(u64) -> Value) {
        let mut seconds = [0.0; 2];
        for ((name, pods), seconds) in self.sets.into_iter().zip(&mut seconds) {
            self.until_status(name, &fields(pods), LIMIT + Duration::from_secs(2 * pods));
            *seconds = start.elapsed().as_secs_f64();
        }
        let cpu = manager_cpu_seconds() - cpu;
        // Coalesced status comes late.
        wait::observe_for(Duration::from_secs(2));
        let elapsed = start.elapsed().as_secs_f64();
        let requests = self.log.read_new(MANAGER).unwrap();
        for ((name, pods), seconds) in self.sets.into_iter().zip(seconds) {
            let is_counted = |request: &&Entry| {
                request.is_write()
                    && (request.resource.starts_with("pods") || request.resource == "persistentvolumeclaims")
                    && belongs(name, &request.name)
            };
            let counted: Vec<&Entry> = requests.iter().filter(is_counted).collect();
            let status = requests
                .iter()
                .filter(|request| request.resource == "statefulsets/status" && request.name == name)
                .count();
            println!(
                "{what}, {name}, {pods} pods: {} writes ({}), {status} of the status, {seconds:.1} s; CPU for both {cpu:.2} s",
                counted.len(),
                Counts::of(counted.iter().copied()),
            );
            // Of few pods one may be written once more: a refused write is repeated.
            assert!(counted.len() as u64 * 100 <= bar * pods + 199, "{what}, {name}");
            assert!(!counted.is_empty(), "{what}, {name}: nothing was counted");
            assert!(
                status as f64 <= 2.0 * elapsed + 2.0,
                "{what}, {name}: {status} in {elapsed} s"
            );
        }
    }

    fn until_status(&self, name: &str, fields: &Value, limit: Patience) {
        wait::until_true(&format!("status of {name} has {fields}"), limit, || {
            let set = self.scenario.kubectl.get(SETS, name)?;
            let current = set["status"]["observedGeneration"] == set["metadata"]["generation"];
            let mut wanted = fields.as_object().unwrap().iter();
            Ok(current && wanted.all(|(key, value)| set["status"][key] == *value))
        })
        .unwrap();
    }
}

/// Is this the name of a pod or claim of the set?
fn belongs(set: &str, name: &str) -> bool {
    let pod = name.strip_prefix("data-").unwrap_or(name);
    pod.strip_prefix(set).is_some_and(|rest| rest.starts_with('-'))
}

fn updated(pods: u64) -> Value {
    json!({"replicas": pods, "updatedReplicas": pods, "updatedReadyReplicas": pods})
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn pods_of_statefulsets_cost_no_more_writes_than_the_bars() {
    let scenario = scenario("statefulset-requests");
    storage_class(&scenario);
    let [many, few] = replicas();
    let sets = [("parallel", many), ("ordered", few)];
    let log = scenario.audit_log();
    let mut bill = Bill { scenario, log, sets };
    let (start, cpu) = (Instant::now(), manager_cpu_seconds());
    for (set, (name, pods)) in [parallel(1), db(1)].into_iter().zip(sets) {
        bill.scenario.kubectl.apply(&named(name, set, pods)).unwrap();
    }
    bill.hold("create", CREATE, start, cpu, updated);
    // Without an order a fifth may be out of service at a time.
    let fifth = rolling(&json!({"maxUnavailable": "20%"}));
    bill.scenario.kubectl.patch(SETS, "parallel", &fifth).unwrap();
    bill.change("in place", IN_PLACE, &template("nginx:2", "b"), updated);
    bill.change("recreate", RECREATE, &template("nginx:2", "c"), updated);
    let none = json!({"spec": {"replicas": 0}});
    bill.change("scale down", SCALE_DOWN, &none, |_| json!({"replicas": 0}));
}
