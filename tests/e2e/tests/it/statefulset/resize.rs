//! What the gates of StatefulSets turn on: claims that grow, and ordinals that start elsewhere.

use kruise_e2e::watch::Watch;
use kruise_e2e::{kubectl::Kubectl, wait};
use serde_json::{Value, json};

use super::{
    ByName, CLAIMS, at_every_moment, claim_templates, claims, db, ended, image, names, parallel, patch, pods,
    rolling, rollout, uids, until, until_status, until_updated, with_claims,
};
use crate::claims::storage_class;
use crate::cluster::{LIMIT, Scenario, scenario_gated, text};

/// A storage class whose claims may grow.
const GROWS: &str = "host-path-grows";

fn growing_class(kubectl: &Kubectl) {
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": GROWS},
        "provisioner": "kubernetes.io/host-path", "volumeBindingMode": "Immediate", "allowVolumeExpansion": true,
    });
    kubectl.apply(&class).unwrap();
}

fn requested(claim: &Value) -> String {
    text(claim, "/spec/resources/requests/storage")
}

fn capacity(claim: &Value) -> String {
    text(claim, "/status/capacity/storage")
}

/// Waits until exactly these claims ask for so much.
fn until_requested(scenario: &Scenario, size: &str, wanted: &[&str]) {
    until(
        scenario,
        CLAIMS,
        &format!("{wanted:?} ask for {size}"),
        |claims| {
            let asking = claims.iter().filter(|(_, claim)| requested(claim) == size);
            asking.map(|(name, _)| name.as_str()).eq(wanted.iter().copied())
        },
    );
}

/// Gives a claim what it asks for, as a resizer would: the lab's storage does not grow.
fn grow(kubectl: &Kubectl, claim: &str, size: &str) {
    let status = json!({"status": {"capacity": {"storage": size}}});
    kubectl.patch_status(CLAIMS, claim, &status).unwrap();
}

/// A patch of the claims' size.
fn size(class: &str, size: &str) -> Value {
    json!({"spec": {"volumeClaimTemplates": claim_templates(class, size)}})
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn with_their_gates_claims_grow_one_pod_after_another_and_ordinals_start_where_the_set_says() {
    let scenario = scenario_gated("statefulset-gates");
    storage_class(&scenario);
    growing_class(&scenario.kubectl);
    claims_grow(&scenario);
    ordinals_start(&scenario);
}

fn claims_grow(scenario: &Scenario) {
    let mut set = with_claims(db(3), GROWS);
    set["spec"]["volumeClaimUpdateStrategy"] = json!({"type": "OnPodRollingUpdate"});
    scenario.kubectl.apply(&set).unwrap();
    until_updated(scenario, 3);
    let (pods_before, before) = (uids(&pods(scenario)), uids(&claims(scenario)));
    let watch = Watch::start(&scenario.kubectl, CLAIMS, "app=db").unwrap();
    watch.until_shown(3, LIMIT).unwrap();

    // An image and a size at once: the partition holds both.
    let mut change = rollout("nginx:2", "b", &json!({"partition": 2}));
    change["spec"]["volumeClaimTemplates"] = claim_templates(GROWS, "2Gi");
    patch(scenario, &change);
    until_requested(scenario, "2Gi", &["data-db-2"]);
    assert_eq!(image(&pods(scenario)["db-2"]), "nginx:1", "its claim comes first");
    grow(&scenario.kubectl, "data-db-2", "2Gi");
    until_status(scenario, &json!({"updatedReadyReplicas": 1, "readyReplicas": 3}));
    until_requested(scenario, "2Gi", &["data-db-2"]);
    let counts = |ready: u32| {
        json!({"volumeClaims": [
            {"volumeClaimName": "data", "compatibleReplicas": ready, "compatibleReadyReplicas": ready},
        ]})
    };
    until_status(scenario, &counts(1));
    patch(scenario, &rolling(&json!({"partition": 0})));
    for (claim, asking) in [
        ("data-db-1", &["data-db-1", "data-db-2"][..]),
        ("data-db-0", &["data-db-0", "data-db-1", "data-db-2"]),
    ] {
        until_requested(scenario, "2Gi", asking);
        grow(&scenario.kubectl, claim, "2Gi");
    }
    until_updated(scenario, 3);
    until_status(scenario, &counts(3));

    // Only the size: no pod is touched.
    let versions = || -> Vec<Value> {
        let pods = pods(scenario).into_values();
        pods.map(|pod| pod["metadata"]["generation"].clone()).collect()
    };
    let generations = versions();
    patch(scenario, &size(GROWS, "3Gi"));
    for asking in [
        &["data-db-2"][..],
        &["data-db-1", "data-db-2"],
        &["data-db-0", "data-db-1", "data-db-2"],
    ] {
        until_requested(scenario, "3Gi", asking);
        grow(&scenario.kubectl, asking[0], "3Gi");
    }
    until_status(scenario, &counts(3));
    assert_eq!(versions(), generations);
    assert_eq!(
        (uids(&pods(scenario)), uids(&claims(scenario))),
        (pods_before, before)
    );
    let events = ended(watch, "claims of 3Gi", |claims| {
        claims.values().all(|claim| capacity(claim) == "3Gi")
    });
    at_every_moment(&events, |claims, _| {
        let growing = claims
            .values()
            .filter(|claim| claim["status"]["phase"] == "Bound" && requested(claim) != capacity(claim));
        assert!(growing.count() <= 1, "{claims:?}");
    });
    scenario.kubectl.run(&["delete", "asts", "db"]).unwrap();
    let delete = ["delete", CLAIMS, "-l", "app=db", "--wait=false"];
    wait::until_true("no pod is left", wait::QUIET, || {
        Ok(scenario.kubectl.list("pods", "app=db")?.is_empty())
    })
    .unwrap();
    scenario.kubectl.run(&delete).unwrap();
    until(scenario, CLAIMS, "no claim is left", ByName::is_empty);
}

fn ordinals_start(scenario: &Scenario) {
    scenario.kubectl.apply(&parallel(2)).unwrap();
    until_updated(scenario, 2);
    for (start, wanted) in [
        (json!({"start": 2}), ["db-2", "db-3"]),
        (json!({"start": 4}), ["db-4", "db-5"]),
        (Value::Null, ["db-0", "db-1"]),
    ] {
        patch(scenario, &json!({"spec": {"ordinals": start}}));
        until(scenario, "pods", &format!("pods are {wanted:?}"), |pods| {
            names(pods) == wanted
        });
        until_status(scenario, &json!({"replicas": 2, "readyReplicas": 2}));
    }
}
