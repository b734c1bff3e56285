//! The order in which nodes of pods pull.

use std::sync::Arc;

use kruise_api::{cloneset::CloneSet, statefulset::StatefulSet};
use kruise_plan_nodes::imagepulljob::{Workload, in_update_order};
use kruise_views::PodView;
use serde_json::{Value, json};

fn pod(name: &str, zone: &str, ready: bool) -> Arc<PodView> {
    let since = "2026-01-01T00:00:00Z";
    let status = if ready { "True" } else { "False" };
    let pod = json!({
        "metadata": {"name": name, "namespace": "shop", "uid": name, "labels": {"zone": zone}, "creationTimestamp": since},
        "spec": {"nodeName": "n1", "containers": []},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": status, "lastTransitionTime": since}]},
    });
    Arc::new(serde_json::from_str(&pod.to_string()).unwrap())
}

fn order(workload: Option<Workload<'_>>, pods: &[Arc<PodView>]) -> String {
    let now = "2026-01-01T01:00:00Z".parse().unwrap();
    let sorted = in_update_order(workload, pods.to_vec(), now);
    sorted
        .iter()
        .map(|pod| &*pod.name)
        .collect::<Vec<&str>>()
        .join(" ")
}

fn priority() -> Value {
    json!({"weightPriority": [{"weight": 50, "matchSelector": {"matchLabels": {"zone": "b"}}}]})
}

#[test]
fn pods_come_in_the_order_in_which_their_workload_updates_them() {
    let pods = [
        pod("web-10", "a", true),
        pod("web-9", "b", true),
        pod("web-1", "a", true),
        pod("web-0", "a", false),
    ];
    assert_eq!(order(None, &pods), "web-0 web-1 web-10 web-9");
    let set = |update: Value| {
        let set = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "metadata": {"name": "web"},
            "spec": {"selector": {}, "template": {}, "updateStrategy": update}});
        StatefulSet::from_value(set).unwrap()
    };
    let plain = set(json!({}));
    assert_eq!(
        order(Some(Workload::StatefulSet(&plain)), &pods),
        "web-10 web-9 web-1 web-0"
    );
    let first = set(json!({"rollingUpdate": {"unorderedUpdate": {"priorityStrategy": priority()}}}));
    assert_eq!(
        order(Some(Workload::StatefulSet(&first)), &pods),
        "web-9 web-10 web-1 web-0"
    );
    let set = |rolling: Value| {
        let set = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "metadata": {"name": "web"},
            "spec": {"selector": {}, "template": {}, "updateStrategy": {"rollingUpdate": rolling}}});
        CloneSet::from_value(set).unwrap()
    };
    let plain = set(json!({}));
    assert_eq!(
        order(Some(Workload::CloneSet(&plain)), &pods),
        "web-0 web-1 web-10 web-9"
    );
    let first = set(json!({"priorityStrategy": priority()}));
    assert_eq!(
        order(Some(Workload::CloneSet(&first)), &pods),
        "web-9 web-0 web-1 web-10"
    );
    let apart = set(json!({"scatterStrategy": [{"key": "zone", "value": "b"}]}));
    let sorted = order(Some(Workload::CloneSet(&apart)), &pods);
    assert!(
        sorted.contains("web-9") && sorted.split(' ').count() == 4,
        "{sorted}"
    );
}
