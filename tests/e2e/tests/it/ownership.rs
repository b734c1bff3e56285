//! Whose pod is it?

use std::time::Duration;

use kruise_e2e::wait;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, scenario, text, web};

fn has_owner(pod: &Value) -> bool {
    pod.pointer("/metadata/ownerReferences/0").is_some()
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_pod_that_leaves_the_selector_is_released_and_replaced() {
    let scenario = scenario("released");
    scenario.kubectl.apply(&web(3)).unwrap();
    scenario.until_status(&json!({"readyReplicas": 3}));
    let name = text(scenario.pods().first().unwrap(), "/metadata/name");
    let label = |value: &str| {
        let label = format!("app={value}");
        scenario
            .kubectl
            .run(&["label", "--overwrite", "pod", &name, &label])
            .unwrap();
    };
    label("other");
    wait::until_true("the pod is released", LIMIT, || {
        Ok(!has_owner(&scenario.kubectl.get("pod", &name)?))
    })
    .unwrap();
    wait::until_true(
        "another takes its place",
        LIMIT,
        || Ok(scenario.pods().len() == 3),
    )
    .unwrap();
    scenario.until_status(&json!({"replicas": 3, "readyReplicas": 3}));

    label("web");
    wait::observe_for(Duration::from_secs(3));
    scenario.until_status(&json!({"replicas": 3}));
    assert_eq!(scenario.pods().len(), 4, "it lives on");
    assert!(
        !has_owner(&scenario.kubectl.get("pod", &name).unwrap()),
        "nobody's"
    );
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_matching_pod_without_an_owner_is_neither_counted_nor_adopted_nor_deleted() {
    let scenario = scenario("orphan");
    let orphan = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stray", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "nginx:1"}]},
    });
    let uid = text(&scenario.kubectl.create(&orphan).unwrap(), "/metadata/uid");
    scenario.kubectl.apply(&web(2)).unwrap();
    scenario.until_status(&json!({"replicas": 2, "readyReplicas": 2}));
    scenario.patch(&json!({"spec": {"replicas": 1}}));
    scenario.until_status(&json!({"replicas": 1}));
    let stray = scenario.kubectl.get("pod", "stray").unwrap();
    assert_eq!(text(&stray, "/metadata/uid"), uid);
    assert!(!has_owner(&stray) && stray.pointer("/metadata/deletionTimestamp").is_none());
}
