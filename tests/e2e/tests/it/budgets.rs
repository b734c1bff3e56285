//! Rollouts under a PodUnavailableBudget that limits updates.

use std::collections::BTreeMap;

use kruise_e2e::audit::{Entry, MANAGER};
use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::wait;
use kruise_e2e::watch::Watch;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, explained, is_ready, scenario_gated, text};

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

/// The image of a pod's only container.
fn image(pod: &Value) -> String {
    text(pod, "/spec/containers/0/image")
}

fn roll_out(scenario: &Scenario, image: &str) {
    for (_, resource, name) in WORKLOADS {
        let patch = json!({"spec": {"template": template(name, image)}});
        scenario.kubectl.patch(resource, name, &patch).unwrap();
    }
}

/// Requests that were refused.
fn refused(requests: &[Entry]) -> Vec<Entry> {
    let is_refused = |request: &&Entry| matches!(request.code, 403 | 429);
    requests.iter().filter(is_refused).cloned().collect()
}

/// Makes the workloads and their budgets, which let so many pods be unavailable, and waits until all are counted.
fn begin(scenario: &Scenario, most: usize) {
    for (kind, resource, name) in WORKLOADS {
        let mut set = workload(kind, name);
        if kind == "StatefulSet" {
            set["spec"]["podManagementPolicy"] = json!("Parallel");
            set["spec"]["serviceName"] = json!(name);
        } else {
            set["spec"]["progressDeadlineSeconds"] = json!(15);
        }
        scenario.kubectl.apply(&budget(kind, name, most)).unwrap();
        scenario.kubectl.apply(&set).unwrap();
        until_updated(scenario, resource, name);
        until_counted(&scenario.kubectl, name, REPLICAS, most);
    }
}

/// Watches the pods of all workloads.
fn watch(scenario: &Scenario) -> [Watch; WORKLOADS.len()] {
    WORKLOADS.map(|(_, _, name)| {
        let watch = Watch::start(&scenario.kubectl, "pods", &format!("app={name}")).unwrap();
        watch.until_shown(REPLICAS, LIMIT).unwrap();
        watch
    })
}

fn until_held(scenario: &Scenario) {
    let namespace = scenario.kubectl.namespace().unwrap();
    for (target, name) in [("clone/web", "web"), ("asts/db", "db")] {
        wait::until_true(&format!("{name} says what holds it"), LIMIT, || {
            let output = explained(scenario, &[target, "--namespace", namespace]);
            Ok(output.contains(&format!("held: PodUnavailableBudget {name} lets no more pods")))
        })
        .unwrap();
    }
}

/// Waits until the CloneSet is stalled, and names its budget.
fn until_stalled(scenario: &Scenario) {
    wait::until_true("Stalled names the budget", LIMIT, || {
        let set = scenario.kubectl.get(WORKLOADS[0].1, WORKLOADS[0].2)?;
        let mut conditions = set["status"]["conditions"].as_array().into_iter().flatten();
        Ok(conditions.any(|condition| {
            condition["type"] == "Stalled"
                && condition["status"] == "True"
                && text(condition, "/message").contains("held by PodUnavailableBudget web")
        }))
    })
    .unwrap();
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_rollout_to_an_image_that_cannot_be_pulled_stops_at_its_budget_and_goes_on_once_it_is_fixed() {
    const BAD: &str = "registry.invalid/nginx:2";
    let scenario = scenario_gated("budget-bad-image");
    begin(&scenario, 1);
    let mut log = scenario.audit_log();
    let watches = watch(&scenario);
    roll_out(&scenario, BAD);
    let until = |what: &str, is_met: &dyn Fn(&[Value]) -> bool| {
        for (_, _, name) in WORKLOADS {
            wait::until_true(&format!("{name}: {what}"), LIMIT, || {
                Ok(is_met(&scenario.pods_of(name)))
            })
            .unwrap();
        }
    };
    until("one pod has the bad image, and is out of service", &|pods| {
        pods.iter().any(|pod| image(pod) == BAD && !is_ready(pod))
    });
    until_held(&scenario);
    until_stalled(&scenario);
    // Its charge has expired by now, and the pod that is broken still counts.
    for (_, _, name) in WORKLOADS {
        let bad = scenario.pods_of(name);
        let bad = bad.iter().filter(|pod| image(pod) == BAD).count();
        assert_eq!(bad, 1, "{name}");
        until_counted(&scenario.kubectl, name, REPLICAS - 1, 0);
    }
    roll_out(&scenario, "nginx:3");
    until("no pod has the bad image, and another one is updated", &|pods| {
        let updated = pods.iter().filter(|pod| image(pod) == "nginx:3").count();
        updated > 1 && pods.iter().all(|pod| image(pod) != BAD)
    });
    for ((_, _, name), watch) in WORKLOADS.into_iter().zip(watches) {
        assert_eq!(most_unready(&watch.stop().unwrap()), 1, "{name}");
        let patch = json!({"spec": {"maxUnavailable": REPLICAS}});
        scenario.kubectl.patch(BUDGETS, name, &patch).unwrap();
    }
    for (_, resource, name) in WORKLOADS {
        until_updated(&scenario, resource, name);
    }
    let requests = log.read_new(MANAGER).unwrap();
    assert_eq!(refused(&requests), []);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn rollouts_under_a_budget_take_one_pod_at_a_time_and_send_nothing_that_is_refused() {
    let scenario = scenario_gated("budget-rollouts");
    begin(&scenario, 0);
    let mut log = scenario.audit_log();
    roll_out(&scenario, "nginx:2");
    let watches = watch(&scenario);
    until_held(&scenario);
    for (_, _, name) in WORKLOADS {
        let patch = json!({"spec": {"maxUnavailable": 1}});
        scenario.kubectl.patch(BUDGETS, name, &patch).unwrap();
    }
    for ((_, resource, name), watch) in WORKLOADS.into_iter().zip(watches) {
        until_updated(&scenario, resource, name);
        assert_eq!(most_unready(&watch.stop().unwrap()), 1, "{name}");
    }
    let requests = log.read_new(MANAGER).unwrap();
    assert_eq!(refused(&requests), []);
    let charges = requests
        .iter()
        .filter(|request| request.resource == "podunavailablebudgets/status" && request.verb == "patch");
    assert!(
        charges.filter(|request| request.code == 200).count() >= 2 * REPLICAS,
        "each pod was charged"
    );
}
