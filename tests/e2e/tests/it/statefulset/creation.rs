//! Creation and scaling in order: names, labels, hosts and claims of pods.

use jiff::Timestamp;
use kruise_e2e::watch::Watch;
use serde_json::{Value, json};

use super::{
    CLAIMS, all_in_service, at_every_moment, claims, condition, db, ended, in_service, is_terminating, name,
    names, pods, set, uids, until, until_status, with_claims,
};
use crate::claims::storage_class;
use crate::cluster::{scenario, text};

/// Seconds that a pod must have been ready for before the next one is touched.
const MIN_READY: i64 = 2;

/// Seconds since the epoch at a JSON pointer.
fn seconds(object: &Value, pointer: &str) -> i64 {
    let time: Timestamp = text(object, pointer).parse().unwrap();
    time.as_second()
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn an_ordered_set_creates_and_deletes_one_pod_at_a_time_and_keeps_the_claims() {
    let scenario = scenario("statefulset-ordered");
    storage_class(&scenario);
    let mut ordered = with_claims(db(3), "host-path");
    ordered["spec"]["updateStrategy"]["rollingUpdate"]["minReadySeconds"] = json!(MIN_READY);
    let watch = Watch::start(&scenario.kubectl, "pods", "app=db").unwrap();
    scenario.kubectl.apply(&ordered).unwrap();
    until_status(
        &scenario,
        &json!({
            "replicas": 3, "readyReplicas": 3, "availableReplicas": 3, "currentReplicas": 3, "updatedReplicas": 3,
            "updatedReadyReplicas": 3, "updatedAvailableReplicas": 3, "labelSelector": "app=db", "collisionCount": 0,
            "volumeClaims": [{"volumeClaimName": "data", "compatibleReplicas": 3, "compatibleReadyReplicas": 3}],
        }),
    );
    let events = ended(watch, "three pods in service", |pods| {
        pods.len() == 3 && all_in_service(pods)
    });
    at_every_moment(&events, |pods, changed| {
        if !in_service(changed) {
            let lower = pods.values().filter(|pod| name(pod) < name(changed));
            assert!(lower.clone().all(in_service), "{}: {pods:?}", name(changed));
        }
    });
    let (created, bound) = (pods(&scenario), claims(&scenario));
    assert_eq!(names(&created), ["db-0", "db-1", "db-2"]);
    let mut ready_since = 0;
    for pod in created.values() {
        let begun = seconds(pod, "/metadata/creationTimestamp");
        assert!(begun - ready_since >= MIN_READY, "{pod}");
        ready_since = seconds(condition(pod, "Ready"), "/lastTransitionTime");
    }
    let revision = text(&set(&scenario), "/status/updateRevision");
    for (index, (name, pod)) in created.iter().enumerate() {
        let labels = &pod["metadata"]["labels"];
        assert_eq!(labels["statefulset.kubernetes.io/pod-name"], name.as_str());
        assert_eq!(labels["apps.kubernetes.io/pod-index"], index.to_string());
        assert_eq!(labels["controller-revision-hash"], revision.as_str());
        assert_eq!(
            (&pod["spec"]["hostname"], &pod["spec"]["subdomain"]),
            (&json!(name), &json!("db"))
        );
        let volumes = pod["spec"]["volumes"].as_array().unwrap();
        let data = volumes.iter().find(|volume| volume["name"] == "data").unwrap();
        let claim = text(data, "/persistentVolumeClaim/claimName");
        assert_eq!(claim, format!("data-{name}"));
        let claim = &bound[&claim];
        assert_eq!(claim["status"]["phase"], "Bound");
        assert_eq!(claim["metadata"]["labels"]["app"], "db");
        assert!(claim["metadata"]["ownerReferences"].is_null(), "{claim}");
    }

    let watch = super::watch_pods(&scenario, 3);
    let scale = |replicas: &str| {
        let replicas = format!("--replicas={replicas}");
        scenario.kubectl.run(&["scale", "asts", "db", &replicas]).unwrap();
    };
    scale("1");
    until_status(&scenario, &json!({"replicas": 1, "readyReplicas": 1}));
    let events = ended(watch, "one pod", |pods| names(pods) == ["db-0"]);
    at_every_moment(&events, |pods, changed| {
        if is_terminating(changed) {
            let higher = pods.keys().filter(|other| **other > name(changed)).count();
            assert_eq!(higher, 0, "{changed}");
        }
    });
    scale("3");
    until_status(&scenario, &json!({"replicas": 3, "availableReplicas": 3}));
    assert_eq!(uids(&claims(&scenario)), uids(&bound), "the claims that they had");

    let delete = ["delete", "asts", "db", "--cascade=foreground"];
    scenario.kubectl.run(&delete).unwrap();
    assert_eq!(pods(&scenario).len(), 0);
    until(&scenario, CLAIMS, "claims stay", |claims| {
        uids(claims) == uids(&bound)
    });
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn the_scale_subresource_of_a_statefulset_shows_its_pods_in_both_versions() {
    let scenario = scenario("statefulset-scale");
    scenario.kubectl.apply(&super::parallel(2)).unwrap();
    until_status(&scenario, &json!({"readyReplicas": 2}));
    for version in ["v1alpha1", "v1beta1"] {
        let path =
            format!("/apis/apps.kruise.io/{version}/namespaces/statefulset-scale/statefulsets/db/scale");
        let scale = scenario.kubectl.run(&["get", "--raw", &path]).unwrap();
        let scale: Value = serde_json::from_str(&scale).unwrap();
        assert_eq!(scale["spec"], json!({"replicas": 2}));
        assert_eq!(scale["status"], json!({"replicas": 2, "selector": "app=db"}));
    }
}
