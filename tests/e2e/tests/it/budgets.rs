//! Rollouts under a PodUnavailableBudget that limits updates.

use std::collections::BTreeMap;

use kruise_e2e::audit::MANAGER;
use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::wait;
use kruise_e2e::watch::Watch;
use serde_json::{Value, json};

use crate::cluster::{Flagged, LIMIT, Scenario, audit_log, explained, scenario_alone, text};

const GATE: [&str; 1] = ["--feature-gates=PodUnavailableBudgetUpdateGate=true"];
const BUDGETS: &str = "podunavailablebudgets";
/// Pods of each workload. The workloads themselves let all of them be unavailable.
const REPLICAS: usize = 5;

/// Kinds, as kubectl has to name them, and their names.
const WORKLOADS: [(&str, &str, &str); 2] = [
    ("CloneSet", "clonesets.v1beta1.apps.kruise.io", "web"),
    ("StatefulSet", "statefulsets.v1beta1.apps.kruise.io", "db"),
];

fn workload(kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": {"app": name}},
            "updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": REPLICAS}},
            "template": template(name, "nginx:1"),
        },
    })
}

fn template(name: &str, image: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": name}},
        "spec": {
            "readinessGates": [{"conditionType": "InPlaceUpdateReady"}],
            "containers": [{"name": "main", "image": image}],
        },
    })
}

fn budget(kind: &str, name: &str, most: usize) -> Value {
    json!({
        "apiVersion": "policy.kruise.io/v1beta1",
        "kind": "PodUnavailableBudget",
        "metadata": {"name": name},
        "spec": {
            "targetRef": {"apiVersion": "apps.kruise.io/v1beta1", "kind": kind, "name": name},
            "maxUnavailable": most,
        },
    })
}

/// Waits until all pods of a workload run this image and are available.
fn until_updated(scenario: &Scenario, resource: &str, name: &str) {
    wait::until_true(&format!("all pods of {name} are updated"), LIMIT, || {
        let set = scenario.kubectl.get(resource, name)?;
        let status = &set["status"];
        let current = status["observedGeneration"] == set["metadata"]["generation"];
        let counts = ["replicas", "updatedReplicas", "updatedReadyReplicas"];
        Ok(current && counts.iter().all(|count| status[*count] == REPLICAS))
    })
    .unwrap();
}

/// Waits until a budget has counted, and has these numbers.
fn until_counted(kubectl: &Kubectl, name: &str, available: usize, allowed: usize) {
    wait::until_true(&format!("budget {name} is counted"), LIMIT, || {
        let budget = kubectl.get(BUDGETS, name)?;
        let status = &budget["status"];
        Ok(status["observedGeneration"] == budget["metadata"]["generation"]
            && status["currentAvailable"] == available
            && status["unavailableAllowed"] == allowed)
    })
    .unwrap();
}

fn is_ready(pod: &Value) -> bool {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// The most pods that were not ready at the same time.
fn most_unready(events: &[Value]) -> usize {
    let mut pods: BTreeMap<String, bool> = BTreeMap::new();
    let mut most = 0;
    for event in events {
        let pod = &event["object"];
        pods.insert(text(pod, "/metadata/name"), is_ready(pod));
        most = most.max(pods.values().filter(|ready| !**ready).count());
    }
    most
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn rollouts_under_a_budget_take_one_pod_at_a_time_and_send_nothing_that_is_refused() {
    let scenario = scenario_alone("budget-rollouts");
    let _flagged = Flagged::shared(scenario.kubectl.kubeconfig(), &GATE);
    for (kind, resource, name) in WORKLOADS {
        let mut set = workload(kind, name);
        if kind == "StatefulSet" {
            set["spec"]["podManagementPolicy"] = json!("Parallel");
            set["spec"]["serviceName"] = json!(name);
        }
        scenario.kubectl.apply(&budget(kind, name, 0)).unwrap();
        scenario.kubectl.apply(&set).unwrap();
        until_updated(&scenario, resource, name);
        until_counted(&scenario.kubectl, name, REPLICAS, 0);
    }
    let mut log = audit_log();
    for (_, resource, name) in WORKLOADS {
        let patch = json!({"spec": {"template": template(name, "nginx:2")}});
        scenario.kubectl.patch(resource, name, &patch).unwrap();
    }
    let watches = WORKLOADS.map(|(_, _, name)| {
        let watch = Watch::start(&scenario.kubectl, "pods", &format!("app={name}")).unwrap();
        watch.until_shown(REPLICAS, LIMIT).unwrap();
        watch
    });
    for (target, name) in [("clone/web", "web"), ("asts/db", "db")] {
        wait::until_true(&format!("{name} says what holds it"), LIMIT, || {
            let output = explained(&scenario, &[target, "--namespace", "budget-rollouts"]);
            Ok(output.contains(&format!("held: PodUnavailableBudget {name} lets no more pods")))
        })
        .unwrap();
    }
    for (_, _, name) in WORKLOADS {
        let patch = json!({"spec": {"maxUnavailable": 1}});
        scenario.kubectl.patch(BUDGETS, name, &patch).unwrap();
    }
    for ((_, resource, name), watch) in WORKLOADS.into_iter().zip(watches) {
        until_updated(&scenario, resource, name);
        assert_eq!(most_unready(&watch.stop().unwrap()), 1, "{name}");
    }
    let requests = log.read_new(MANAGER).unwrap();
    let refused: Vec<_> = requests
        .iter()
        .filter(|request| request.namespace == "budget-rollouts" && matches!(request.code, 403 | 429))
        .collect();
    assert!(refused.is_empty(), "{refused:?}");
    let charges = requests
        .iter()
        .filter(|request| request.resource == "podunavailablebudgets/status" && request.verb == "patch");
    assert!(
        charges.filter(|request| request.code == 200).count() >= 2 * REPLICAS,
        "each pod was charged"
    );
}
