//! A cluster that OpenKruise ran is taken over at the moment its leader lets go, and no pod is written.

use std::time::Duration;

use kruise_e2e::audit::{Entry, MANAGER};
use kruise_e2e::wait;
use serde_json::{Value, json};

use crate::cluster::{
    LEASE, LIMIT, Scenario, audit_log, container, crash_manager, restart_manager, scenario_alone, text, web,
};
use crate::stored::{Left, Stored, restored, side_by_side};

/// CloneSets, and one StatefulSet.
const SETS: [&str; 5] = ["asts", "canary", "claims", "plain", "spread"];

/// A lease that outlives the test: this manager leads only once the other one lets go.
const STANDBY: &[&str] = &[
    "--leader-election-lease-duration=10m",
    "--leader-election-renew-deadline=9m",
    "--leader-election-retry-period=300ms",
];

/// Makes somebody else the leader and our manager one that answers webhooks and waits.
pub(crate) fn stand_by(scenario: &Scenario) {
    let system = scenario.kubectl.in_namespace("kruise-system");
    hold_lease(scenario, "openkruise", 600);
    restart_manager(scenario.kubectl.kubeconfig(), STANDBY);
    assert_eq!(
        text(&system.get("leases", LEASE).unwrap(), "/spec/holderIdentity"),
        "openkruise"
    );
}

/// What client-go writes when a leader takes (or, with an empty name, lets go of) the lease.
pub(crate) fn hold_lease(scenario: &Scenario, holder: &str, seconds: u32) {
    let system = scenario.kubectl.in_namespace("kruise-system");
    let spec = json!({"holderIdentity": holder, "leaseDurationSeconds": seconds});
    system.patch("leases", LEASE, &json!({"spec": spec})).unwrap();
}

/// Lets our manager lead and waits until it has looked at everything once.
pub(crate) fn take_over(scenario: &Scenario) {
    hold_lease(scenario, "", 1);
    // A set of its own is at work only after the caches were read and the queue went round.
    scenario.kubectl.apply(&web(1)).unwrap();
    scenario.until_status(&json!({"readyReplicas": 1}));
    wait::observe_for(Duration::from_secs(3));
}

fn pod_writes(requests: &[Entry], namespace: &str) -> Vec<String> {
    let writes = requests
        .iter()
        .filter(|r| r.namespace == namespace && r.is_write());
    let of_sets = writes.filter(|r| {
        let name = r.name.strip_prefix("data-").unwrap_or(&r.name);
        SETS.iter().any(|set| name.starts_with(&format!("{set}-")))
    });
    let owned = ["controllerrevisions", "persistentvolumeclaims"];
    of_sets
        .filter(|r| r.resource.starts_with("pods") || owned.contains(&r.resource.as_str()))
        .map(|r| format!("{} {} {} {}", r.verb, r.resource, r.name, r.code))
        .collect()
}

/// What is taken over. By hand there is only what is at rest.
const LEFT: [Left; 7] = [
    ("1.4", "rest"),
    ("1.8.4", "rest"),
    ("1.9.0", "rest"),
    ("main", "rest"),
    ("1.8.4", "mid"),
    ("1.9.0", "mid"),
    ("main", "mid"),
];

/// Answers the in-place hook of `canary` for every updated pod until `fields` are reached.
fn until_status_with_hook(scenario: &Scenario, fields: &Value) {
    wait::until_true(&format!("canary has {fields}"), LIMIT, || {
        for pod in scenario.pods_of("canary") {
            if text(&pod, "/metadata/labels/lifecycle.apps.kruise.io~1state") == "Updated" {
                let name = text(&pod, "/metadata/name");
                scenario
                    .kubectl
                    .run(&["label", "--overwrite", "pod", &name, "example.com/block=true"])?;
            }
        }
        let set = scenario.kubectl.get("clonesets", "canary")?;
        Ok(fields
            .as_object()
            .unwrap()
            .iter()
            .all(|(key, value)| set["status"][key] == *value))
    })
    .unwrap();
}

/// Changes the StatefulSet and waits until so many of its three pods are updated, in place; returns the images by
/// ordinal.
fn statefulset_updated(scenario: &Scenario, patch: &Value, updated: u32) -> Vec<String> {
    let resource = "statefulsets.v1beta1.apps.kruise.io";
    let uids = scenario.uids_of("asts");
    scenario.kubectl.patch(resource, "asts", patch).unwrap();
    wait::until_true(
        &format!("{updated} pods of the StatefulSet are updated"),
        LIMIT,
        || {
            let set = scenario.kubectl.get(resource, "asts")?;
            let status = &set["status"];
            Ok(status["observedGeneration"] == set["metadata"]["generation"]
                && status["updatedReadyReplicas"] == updated
                && status["availableReplicas"] == 3)
        },
    )
    .unwrap();
    assert_eq!(scenario.uids_of("asts"), uids, "in place");
    let mut pods = scenario.pods_of("asts");
    pods.sort_by_key(|pod| text(pod, "/metadata/name"));
    pods.iter()
        .map(|pod| text(pod, "/spec/containers/0/image"))
        .collect()
}

fn rollout_continues(scenario: &Scenario) {
    let uids = scenario.uids_of("canary");
    let spec = json!({"spec": {"updateStrategy": {"partition": 0}}});
    scenario
        .kubectl
        .patch("clonesets.v1alpha1.apps.kruise.io", "canary", &spec)
        .unwrap();
    until_status_with_hook(scenario, &json!({"updatedReplicas": 5, "availableReplicas": 5}));
    assert_eq!(scenario.uids_of("canary"), uids, "in place");
    let images: Vec<String> = scenario
        .pods_of("canary")
        .iter()
        .map(|pod| text(pod, "/spec/containers/0/image"))
        .collect();
    assert_eq!(images, ["nginx:1.26"; 5]);
    let all = json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}});
    assert_eq!(statefulset_updated(scenario, &all, 3), ["nginx:1.26"; 3]);
}

fn rollout_begins(scenario: &Scenario) {
    let before = scenario.uids_of("plain");
    let claims = scenario.uids_of("claims");
    let set = scenario.kubectl.get("clonesets", "claims").unwrap();
    let mut containers = set["spec"]["template"]["spec"]["containers"].clone();
    containers[0]["image"] = json!("nginx:9");
    let image = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    for (set, template) in [("plain", container("nginx:9", "b")), ("claims", image)] {
        scenario
            .kubectl
            .patch("clonesets.v1alpha1.apps.kruise.io", set, &template)
            .unwrap();
    }
    scenario.until_status_of("plain", &json!({"updatedReadyReplicas": 3, "replicas": 3}));
    let after = scenario.uids_of("plain");
    assert!(after.iter().all(|uid| !before.contains(uid)), "by recreation");
    scenario.until_status_of("claims", &json!({"updatedReadyReplicas": 2, "replicas": 2}));
    assert_eq!(scenario.uids_of("claims"), claims, "in place");
    // Its partition is 1.
    let set = scenario
        .kubectl
        .get("statefulsets.v1beta1.apps.kruise.io", "asts")
        .unwrap();
    let mut containers = set["spec"]["template"]["spec"]["containers"].clone();
    containers[0]["image"] = json!("nginx:9");
    let image = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    assert_eq!(
        statefulset_updated(scenario, &image, 2),
        ["nginx:1.25", "nginx:9", "nginx:9"]
    );
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn clusters_at_rest_and_in_rollouts_are_taken_over_without_a_pod_written_and_roll_out() {
    let scenario = scenario_alone("takeover");
    stand_by(&scenario);
    let left = restored(&scenario, &LEFT, |beside, (version, phase)| {
        Stored::restore(&beside.kubectl, version, phase)
    });
    let uids = |(beside, _): &(Scenario, Stored)| SETS.map(|set| beside.uids_of(set));
    let before = side_by_side(&left, uids);
    let mut log = audit_log();
    take_over(&scenario);
    let requests = log.read_new(MANAGER).unwrap();
    for (beside, _) in &left {
        let namespace = beside.kubectl.namespace().unwrap();
        assert_eq!(pod_writes(&requests, namespace), [""; 0], "{namespace}");
    }
    assert_eq!(side_by_side(&left, uids), before);
    crash_manager(scenario.kubectl.kubeconfig());
    let each: Vec<_> = left.iter().zip(LEFT).collect();
    side_by_side(&each, |((beside, stored), (_, phase))| {
        stored.start_nodes();
        if *phase == "mid" {
            rollout_continues(beside);
        } else {
            rollout_begins(beside);
        }
    });
}
