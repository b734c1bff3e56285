//! Evictions by many clients under many budgets, beside rollouts in place.
//!
//! How many pods are available is counted from outside: by a watch of all pods, change by change. Requests are
//! counted in the API server's audit log.
//!
//! Small by default. `KRUISE_E2E_BUDGETS` budgets have `KRUISE_E2E_PODS_OF_A_BUDGET` pods each;
//! `KRUISE_E2E_EVICTIONS` pods a second are to be evicted for `KRUISE_E2E_SECONDS` seconds. Where the number of budgets
//! is given, two bars are held that mean something for many requests only: how many status writes an eviction
//! costs, and the time that a review adds to an eviction, compared with what the API server needs for a status
//! write.

mod clients;
mod watched;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kruise_e2e::audit::{Entry, MANAGER};
use kruise_e2e::wait;
use serde_json::{Value, json};

use super::budget;
use crate::cluster::{LIMIT, Scenario, scenario_gated};
use clients::{Clients, Times, quantile};
use watched::Watched;

const NAME: &str = "budget-load";
/// A namespace without a budget.
const UNGUARDED: &str = "budget-load-unguarded";
const CHARGE: &str = "podunavailablebudgets/status";

/// Clients that evict.
const CLIENTS: usize = 8;
/// Status writes that are tried for an eviction that is granted, in hundredths.
const CHARGES: usize = 120;
/// A review may take so many times as long as a status write.
const SLOWER: u32 = 3;
/// Pods without a budget.
const UNGUARDED_PODS: usize = 20;
/// Counts of a budget, in so many seconds. Two a second, and one at each end.
const COUNTS: (usize, i64) = (21, 10);

#[derive(Clone, Copy)]
struct Size {
    budgets: usize,
    pods: usize,
    evictions: usize,
    time: Duration,
    /// Are the bars held?
    is_measured: bool,
}

impl Size {
    fn given() -> Self {
        let given = |variable: &str| std::env::var(variable).ok().map(|text| text.parse().unwrap());
        let number = |variable, default| given(variable).unwrap_or(default);
        Self {
            budgets: number("KRUISE_E2E_BUDGETS", 3),
            pods: number("KRUISE_E2E_PODS_OF_A_BUDGET", 6),
            evictions: number("KRUISE_E2E_EVICTIONS", 20),
            time: Duration::from_secs(number("KRUISE_E2E_SECONDS", 6) as u64),
            is_measured: given("KRUISE_E2E_BUDGETS").is_some(),
        }
    }

    /// A tenth of the pods of a budget may be unavailable.
    fn most(self) -> usize {
        self.pods.div_ceil(10)
    }

    /// Of five workloads one is rolled out all the time.
    fn rollouts(self) -> usize {
        self.budgets.div_ceil(5)
    }
}

fn name_of(index: usize) -> String {
    format!("load-{index:02}")
}

fn image(number: usize) -> String {
    format!("nginx:{number}")
}

/// A CloneSet that lets all its pods be unavailable, so that its budget alone limits it.
fn cloneset(name: &str, pods: usize) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "metadata": {"name": name},
        "spec": {
            "replicas": pods,
            "selector": {"matchLabels": {"app": name}},
            "updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "100%"}},
            "template": {
                "metadata": {"labels": {"app": name, "load": NAME}},
                "spec": {
                    "readinessGates": [{"conditionType": "InPlaceUpdateReady"}],
                    "containers": [{"name": "main", "image": image(1)}],
                },
            },
        },
    })
}

/// Makes the budgets and their pods.
fn begin(scenario: &Scenario, size: Size) {
    let objects = (0..size.budgets).flat_map(|index| {
        let name = name_of(index);
        let target = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": name});
        let spec = json!({"targetRef": target, "maxUnavailable": "10%"});
        [budget(&name, spec), cloneset(&name, size.pods)]
    });
    // Nothing acts on a status that is written to it.
    let bare = json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "PodProbeMarker", "metadata": {"name": clients::BARE},
        "spec": {"selector": {"matchLabels": {"app": "none"}}, "probes": [{
            "name": "any", "containerName": "main", "probe": {"exec": {"command": ["true"]}},
            "podConditionType": "example.com/any",
        }]},
    });
    let objects: Vec<Value> = objects.chain([bare]).collect();
    let kubectl = &scenario.kubectl;
    kubectl.apply_all(&objects).unwrap();
    kubectl.run(&["create", "namespace", UNGUARDED]).unwrap();
    let unguarded = kubectl.in_namespace(UNGUARDED);
    unguarded.apply(&cloneset(clients::BARE, UNGUARDED_PODS)).unwrap();
    until_whole(scenario, size);
}

/// Waits until all budgets count all their pods, and nothing is charged.
fn until_whole(scenario: &Scenario, size: Size) {
    wait::until_true("all budgets are whole", LIMIT, || {
        let budgets = scenario.kubectl.list("podunavailablebudgets", "")?;
        let is_whole = |budget: &Value| {
            let status = &budget["status"];
            status["currentAvailable"] == size.pods
                && status["unavailableAllowed"] == size.most()
                && status["disruptedPods"].is_null()
                && status["unavailablePods"].is_null()
        };
        Ok(budgets.len() == size.budgets && budgets.iter().all(is_whole))
    })
    .unwrap();
}

/// Rolls out one image after the other until the time is over, and pauses the rollouts then.
async fn roll_out(clients: &Clients, watched: &Watched, size: Size, until: Instant) {
    let mut last: BTreeMap<String, usize> = (0..size.rollouts()).map(|index| (name_of(index), 1)).collect();
    while Instant::now() < until {
        for (name, number) in &mut last {
            if watched.count(name, |pod| pod.runs(&image(*number))) == size.pods {
                *number += 1;
                let containers = json!([{"name": "main", "image": image(*number)}]);
                let spec = json!({"template": {"spec": {"containers": containers}}});
                clients.specify(name, &spec).await;
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for name in last.keys() {
        clients
            .specify(name, &json!({"updateStrategy": {"paused": true}}))
            .await;
    }
}

/// Evicts and rolls out.
fn run(scenario: &Scenario, size: Size, watched: &Arc<Watched>) -> Times {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let clients = Clients::new(scenario.kubectl.kubeconfig(), CLIENTS).await;
        let names: Vec<String> = (0..size.budgets).map(name_of).collect();
        watched.follow(clients.watcher()).await;
        wait::until_true("the watch shows all pods", LIMIT, || {
            let all = |name: &String| watched.count(name, |pod| pod.available) == size.pods;
            let unguarded = watched.count(clients::BARE, |pod| pod.available);
            Ok(names.iter().all(all) && unguarded == UNGUARDED_PODS)
        })
        .unwrap();
        let least = size.pods - size.most();
        watched.demand(names.iter().map(|name| (name.clone(), least)).collect());
        let until = Instant::now() + size.time;
        let evictions = clients.run(watched.clone(), &names, size.evictions, until);
        tokio::join!(evictions, roll_out(&clients, watched, size, until)).0
    })
}

/// What clients saw, and what the manager wrote to the statuses of the budgets.
struct Report<'a> {
    size: Size,
    times: Times,
    watched: &'a Watched,
    writes: Vec<Entry>,
}

impl Report<'_> {
    /// Writes by this part of the manager.
    fn by(&self, agent: &str) -> Vec<&Entry> {
        let agent = format!("{MANAGER}/{agent}");
        let writes = self.writes.iter();
        writes.filter(|entry| entry.user_agent == agent).collect()
    }

    fn charges(&self) -> Vec<&Entry> {
        self.by("webhook")
    }

    fn counts(&self) -> Vec<&Entry> {
        self.by("podunavailablebudget-controller")
    }

    fn print(&self) {
        let Self {
            size, times, watched, ..
        } = self;
        let (granted, refused, gone) = (times.granted.len(), times.refused.len(), times.gone);
        let rate = (granted + refused + gone) as f64 / size.time.as_secs_f64();
        let (charges, counts) = (self.charges(), self.counts());
        println!(
            "{} pods of {} budgets: {rate:.0} evictions a second, {granted} granted, {refused} refused, {gone} gone; {} status \
             writes for them, {} of them lost",
            size.pods * size.budgets,
            size.budgets,
            charges.len(),
            lost(&charges),
        );
        let of_plans = self.by("cloneset-controller");
        println!(
            "{} rollouts: {} status writes, {} of them lost; counts: {}, {} of them lost, at most {} of a budget in {} s",
            size.rollouts(),
            of_plans.len(),
            lost(&of_plans),
            counts.len(),
            lost(&counts),
            most_counts(COUNTS.1, &counts),
            COUNTS.1,
        );
        println!("p99 {}", times.quantiles(99));
        println!("p50 {}", times.quantiles(50));
        println!(
            "available at least {} of {}, {} demanded",
            watched.least(),
            size.pods,
            size.pods - size.most()
        );
    }

    /// Holds what is true for any number of requests.
    fn hold(&self) {
        let Self { times, watched, .. } = self;
        assert_eq!(watched.violations(), Vec::<String>::new());
        assert_eq!(times.others, Vec::<String>::new(), "answers of another kind");
        let (granted, charges) = (times.granted.len(), self.charges());
        assert!(granted > 0, "pods were evicted");
        assert!(!self.by("cloneset-controller").is_empty(), "pods were updated");
        assert!(watched.least() < self.size.pods, "the watch has seen it");
        let stored = charges.len() - lost(&charges);
        assert!(
            stored <= granted + times.gone,
            "{stored} stored charges for {granted} evictions"
        );
        let most = most_counts(COUNTS.1, &self.counts());
        assert!(most <= COUNTS.0, "{most} counts in {} s", COUNTS.1);
    }

    /// Holds the bars that need many requests.
    fn measure(&self) {
        let (granted, charges) = (self.times.granted.len(), self.charges().len());
        assert!(
            charges * 100 <= CHARGES * granted,
            "{charges} status writes for {granted} evictions"
        );
        let times = [&self.times.granted, &self.times.unguarded, &self.times.status];
        let [eviction, unguarded, status] = times.map(|times| quantile(99, times));
        assert!(
            eviction <= unguarded + status * SLOWER,
            "an eviction takes {eviction:?}, {unguarded:?} without a budget, a status write {status:?}"
        );
    }
}

fn lost(writes: &[&Entry]) -> usize {
    writes.iter().filter(|entry| entry.code == 409).count()
}

/// The most of these times that are within so many seconds.
fn most_within(seconds: i64, times: &[Timestamp]) -> usize {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let window = seconds * 1000;
    let within = |from: &Timestamp| {
        let end = from.as_millisecond() + window;
        let later = sorted.iter().skip_while(|time| *time < from);
        later.take_while(|time| time.as_millisecond() < end).count()
    };
    sorted.iter().map(within).max().unwrap_or(0)
}

/// The most counts of one budget within so many seconds.
fn most_counts(seconds: i64, counts: &[&Entry]) -> usize {
    let mut by_budget: BTreeMap<&str, Vec<Timestamp>> = BTreeMap::new();
    for count in counts {
        let times = by_budget.entry(count.name.as_str()).or_default();
        times.push(count.received.parse().unwrap());
    }
    let most = by_budget.values().map(|times| most_within(seconds, times));
    most.max().unwrap_or(0)
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn evictions_by_many_clients_beside_rollouts_keep_every_budget_and_share_their_status_writes() {
    let scenario = scenario_gated(NAME);
    let size = Size::given();
    begin(&scenario, size);
    let mut log = scenario.audit_log();
    let watched = Arc::<Watched>::default();
    let times = run(&scenario, size, &watched);
    until_whole(&scenario, size);
    let mut writes = log.read_new(MANAGER).unwrap();
    writes.retain(|entry| entry.resource == CHARGE && entry.verb == "patch");
    let report = Report {
        size,
        times,
        watched: &watched,
        writes,
    };
    report.print();
    report.hold();
    if size.is_measured {
        report.measure();
    }
}

#[test]
fn the_most_times_within_a_window_are_found_whatever_their_order() {
    let at = |millisecond: i64| Timestamp::from_millisecond(millisecond).unwrap();
    let times: Vec<Timestamp> = [9_000, 0, 999, 1_000, 1_500].into_iter().map(at).collect();
    assert_eq!(most_within(1, &times), 3);
    assert_eq!(most_within(1, &[]), 0);
}
