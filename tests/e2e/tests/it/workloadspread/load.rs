//! Many pods that a Deployment creates at once, in three subsets with a limit each.
//!
//! Small by default: `KRUISE_E2E_SPREAD_PODS` pods of each subset. Where it is given, the bar for the writes of the
//! status is held, and times are printed: of the creation of a pod that is spread, of one that is not, and of a
//! write of the status.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kruise_e2e::audit::{Entry, MANAGER};
use kruise_e2e::wait;
use serde_json::{Value, json};

use super::{nodes_of, spread, subset, until_counts, until_known, workload};
use crate::cluster::{LIMIT, Scenario, scenario};
use crate::own_nodes::Nodes;

const NAME: &str = "spread-load";
const ZONES: [&str; 3] = ["a", "b", "c"];
const STATUS: &str = "workloadspreads/status";
/// Status writes for each pod, in hundredths.
const WRITES: usize = 20;
/// Pods that a node of this suite has room for, less some.
const PODS_OF_A_NODE: usize = 100;

/// Pods of each subset, and whether somebody asked for so many.
fn size() -> (usize, bool) {
    let given = std::env::var("KRUISE_E2E_SPREAD_PODS").ok();
    let pods = given.as_deref().map_or(20, |text| text.parse().unwrap());
    (pods, given.is_some())
}

/// The WorkloadSpread's pods, and then as many pods that nothing spreads.
fn create(scenario: &Scenario, nodes: &Nodes, pods: usize) {
    let kubectl = &scenario.kubectl;
    let all = u32::try_from(pods * ZONES.len()).unwrap();
    let subsets: Vec<Value> = ZONES.iter().map(|zone| subset(zone, json!(pods))).collect();
    kubectl
        .create(&spread("apps/v1", "Deployment", &json!(subsets)))
        .unwrap();
    until_known(kubectl);
    kubectl
        .create(&workload("apps/v1", "Deployment", all, nodes))
        .unwrap();
    until_ready(scenario, "web", all);
    let counts = ZONES.map(|zone| format!("{zone} {pods}/0"));
    until_counts(kubectl, &counts.join(", "));
}

fn until_ready(scenario: &Scenario, deployment: &str, replicas: u32) {
    wait::until_true("all pods are ready", LIMIT, || {
        let status = scenario.kubectl.get("deployments", deployment)?["status"].clone();
        Ok(status["readyReplicas"] == replicas)
    })
    .unwrap();
}

/// How many pods are in the subset of their zone, by zones.
fn placed(scenario: &Scenario) -> BTreeMap<String, usize> {
    let nodes = scenario.kubectl.list("nodes", "").unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let zones = nodes.iter().map(|node| {
        let metadata = &node["metadata"];
        (text(&metadata["name"]), text(&metadata["labels"][super::ZONE]))
    });
    let zones: BTreeMap<String, String> = zones.collect();
    let mut placed = BTreeMap::new();
    for pod in scenario.kubectl.list("pods", "app=web").unwrap() {
        let subset = text(&pod["metadata"]["labels"]["subset"]);
        assert_eq!(zones.get(&text(&pod["spec"]["nodeName"])), Some(&subset), "{pod}");
        *placed.entry(subset).or_default() += 1;
    }
    placed
}

fn took(entry: &Entry) -> SignedDuration {
    let time = |text: &str| text.parse::<Timestamp>().unwrap();
    time(&entry.answered).duration_since(time(&entry.received))
}

/// In milliseconds: half of the requests, and 99 of a hundred, took no longer.
fn quantiles(entries: &[&Entry]) -> String {
    let mut times: Vec<_> = entries.iter().map(|entry| took(entry)).collect();
    times.sort_unstable();
    let at = |percent: usize| {
        let index = (times.len() * percent).div_ceil(100).saturating_sub(1);
        times.get(index).copied().unwrap_or_default().as_secs_f64() * 1000.0
    };
    format!("{}: p50 {:.1} ms, p99 {:.1} ms", times.len(), at(50), at(99))
}

/// The most of these requests that were under way at the same time.
fn most_at_once(entries: &[&Entry]) -> usize {
    let begins = |at: &Entry| {
        let is_under_way = |other: &&&Entry| other.received <= at.received && at.received < other.answered;
        entries.iter().filter(is_under_way).count()
    };
    entries.iter().map(|entry| begins(entry)).max().unwrap_or(0)
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn pods_that_a_deployment_creates_at_once_fill_three_subsets_exactly_and_share_their_status_writes() {
    let scenario = scenario(NAME);
    let (pods, is_measured) = size();
    let all = pods * ZONES.len();
    let nodes: Vec<&str> = ZONES
        .iter()
        .flat_map(|zone| vec![*zone; pods.div_ceil(PODS_OF_A_NODE)])
        .collect();
    let nodes = nodes_of(&scenario, &nodes);
    let mut log = scenario.audit_log();
    create(&scenario, &nodes, pods);
    let wanted = ZONES.map(|zone| (zone.to_owned(), pods));
    assert_eq!(placed(&scenario), BTreeMap::from(wanted));

    let requests = log.read_new("").unwrap();
    let is_creation = |entry: &&Entry| entry.verb == "create" && entry.resource == "pods";
    let creations = requests.iter().filter(is_creation);
    let (created, refused): (Vec<&Entry>, Vec<&Entry>) = creations.partition(|entry| entry.code == 201);
    assert_eq!(created.len(), all);
    // Where the API server is too slow to say who owns a pod, its creation is tried again.
    let is_slow = |entry: &&Entry| entry.code == 503 && !is_measured;
    assert!(refused.iter().all(is_slow), "refused: {}", refused.len());
    let of_reviews = format!("{MANAGER}/webhook");
    let is_write = |entry: &&Entry| entry.resource == STATUS && entry.user_agent == of_reviews;
    let writes: Vec<&Entry> = requests.iter().filter(is_write).collect();
    let lost = writes.iter().filter(|entry| entry.code == 409).count();
    println!(
        "{all} pods: {} status writes for them, {lost} of them lost",
        writes.len()
    );
    assert!(!writes.is_empty() && writes.len() <= all);
    if is_measured {
        measure(&scenario, &nodes, &created, &writes);
    }
}

/// Holds the bars that need many pods, and prints how long requests took.
fn measure(scenario: &Scenario, nodes: &Nodes, created: &[&Entry], writes: &[&Entry]) {
    println!("creations of pods that are spread, {}", quantiles(created));
    println!("writes of the status, {}", quantiles(writes));
    let mut log = scenario.audit_log();
    let mut other = workload(
        "apps/v1",
        "Deployment",
        u32::try_from(created.len()).unwrap(),
        nodes,
    );
    other["metadata"]["name"] = json!("bare");
    other["spec"]["selector"]["matchLabels"]["app"] = json!("bare");
    other["spec"]["template"]["metadata"]["labels"]["app"] = json!("bare");
    scenario
        .kubectl
        .run(&["delete", "deployment", "web", "--cascade=foreground"])
        .unwrap();
    scenario.kubectl.create(&other).unwrap();
    until_ready(scenario, "bare", u32::try_from(created.len()).unwrap());
    let mut requests = log.read_new("").unwrap();
    requests.retain(|entry| entry.verb == "create" && entry.resource == "pods");
    println!(
        "creations of pods that are not, {}",
        quantiles(&requests.iter().collect::<Vec<_>>())
    );
    assert_eq!(most_at_once(writes), 1, "status writes under way at a time");
    assert!(
        writes.len() * 100 <= WRITES * created.len(),
        "{} status writes for {} pods",
        writes.len(),
        created.len()
    );
}
