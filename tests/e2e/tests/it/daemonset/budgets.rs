//! Updates under a PodUnavailableBudget.

use std::collections::{BTreeMap, BTreeSet};

use kruise_e2e::audit::MANAGER;
use kruise_e2e::wait;
use kruise_e2e::watch::Watch;
use serde_json::{Value, json};

use super::{Nodes, agent, image, in_service, nodes_with, patch, uids, until_status};
use crate::cluster::{LIMIT, Scenario, explained, scenario_gated, text};

const NAMESPACE: &str = "daemonset-budget";
const BUDGETS: &str = "podunavailablebudgets";
const NODES: usize = 4;

/// Waits until the budget has counted, and has these numbers.
fn until_counted(scenario: &Scenario, available: usize, allowed: usize) {
    wait::until_true("the budget is counted", LIMIT, || {
        let budget = scenario.kubectl.get(BUDGETS, "agent")?;
        let status = &budget["status"];
        Ok(status["observedGeneration"] == budget["metadata"]["generation"]
            && status["currentAvailable"] == available
            && status["unavailableAllowed"] == allowed)
    })
    .unwrap();
}

/// The budget lets so many pods be unavailable.
fn allow(scenario: &Scenario, count: usize) {
    let patch = json!({"spec": {"maxUnavailable": count}});
    scenario.kubectl.patch(BUDGETS, "agent", &patch).unwrap();
}

/// The fewest nodes that had a pod in service at the same time, since all of them had one.
fn fewest_served(events: &[Value]) -> usize {
    let mut pods: BTreeMap<String, Value> = BTreeMap::new();
    let (mut fewest, mut all) = (NODES, false);
    for event in events {
        let pod = &event["object"];
        let name = text(pod, "/metadata/name");
        if event["type"] == "DELETED" {
            pods.remove(&name);
        } else {
            pods.insert(name, pod.clone());
        }
        let served = pods.values().filter(|pod| in_service(pod));
        let served: BTreeSet<String> = served.map(|pod| text(pod, "/spec/nodeName")).collect();
        all |= served.len() == NODES;
        if all {
            fewest = fewest.min(served.len());
        }
    }
    fewest
}

/// Changes the template, which waits for the budget, and then lets one pod go at a time. One node at most lacks a
/// pod in service at any time.
fn roll_out(scenario: &Scenario, nodes: &Nodes, change: &Value) {
    until_counted(scenario, NODES, 0);
    let before = uids(scenario);
    let watch = Watch::start(&scenario.kubectl, "pods", "app=agent").unwrap();
    watch.until_shown(NODES, LIMIT).unwrap();
    patch(scenario, change);
    wait::until_true("the node says what holds its pod", LIMIT, || {
        let output = explained(
            scenario,
            &["daemon/agent", &nodes.names[0], "--namespace", NAMESPACE],
        );
        Ok(output.contains("held: PodUnavailableBudget agent lets no more pods become unavailable now"))
    })
    .unwrap();
    assert_eq!(uids(scenario), before);
    allow(scenario, 1);
    until_status(
        scenario,
        &json!({"updatedNumberScheduled": NODES, "numberAvailable": NODES, "numberUnavailable": null}),
    );
    assert_eq!(fewest_served(&watch.stop().unwrap()), NODES - 1);
    allow(scenario, 0);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn updates_of_a_daemonset_under_a_budget_take_one_node_at_a_time_and_send_nothing_that_is_refused() {
    let scenario = scenario_gated(NAMESPACE);
    let nodes = Nodes::new(&scenario, NODES);
    let budget = json!({
        "apiVersion": "policy.kruise.io/v1beta1",
        "kind": "PodUnavailableBudget",
        "metadata": {"name": "agent"},
        "spec": {
            "targetRef": {"apiVersion": "apps.kruise.io/v1beta1", "kind": "DaemonSet", "name": "agent"},
            "maxUnavailable": 0,
        },
    });
    scenario.kubectl.apply(&budget).unwrap();
    // The set itself lets all of them be unavailable.
    let rolling = json!({"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": "100%"});
    scenario.kubectl.apply(&agent(&nodes, &rolling)).unwrap();
    until_status(&scenario, &json!({"numberAvailable": NODES}));
    let first = uids(&scenario);
    let mut log = scenario.audit_log();

    roll_out(&scenario, &nodes, &image("nginx:2"));
    assert_eq!(nodes_with(&scenario, "nginx:2"), nodes.names);
    assert_eq!(uids(&scenario), first, "in place");

    // While a node is without a pod, the budget counts one pod less, and no other pod may go.
    let variable = json!({"name": "main", "image": "nginx:2", "env": [{"name": "A", "value": "b"}]});
    let change = json!({"spec": {"template": {"spec": {"containers": [variable]}}}});
    roll_out(&scenario, &nodes, &change);
    let last = uids(&scenario);
    assert!(last.iter().all(|(node, uid)| first[node] != *uid), "by new pods");

    let requests = log.read_new(MANAGER).unwrap();
    let refused: Vec<_> = requests
        .iter()
        .filter(|request| matches!(request.code, 403 | 429))
        .collect();
    assert!(refused.is_empty(), "{refused:?}");
    let charges = requests.iter().filter(|request| {
        request.resource == "podunavailablebudgets/status" && request.verb == "patch" && request.code == 200
    });
    assert!(charges.count() >= 2 * NODES, "each pod was charged");
}
