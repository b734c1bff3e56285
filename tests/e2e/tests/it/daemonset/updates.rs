//! Updates with surge, and of a part of the nodes.

use std::collections::BTreeMap;

use kruise_e2e::wait;
use kruise_e2e::watch::Watch;
use serde_json::{Value, json};

use super::{Nodes, agent, image, in_service, nodes_with, patch, uids, until_status};
use crate::cluster::{LIMIT, scenario, text};

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn with_surge_no_node_of_a_daemonset_is_ever_without_a_ready_pod() {
    let scenario = scenario("daemonset-surge");
    let nodes = Nodes::new(&scenario, 4);
    let rolling = json!({"maxSurge": "50%", "maxUnavailable": 0});
    let mut set = agent(&nodes, &rolling);
    set["spec"]["minReadySeconds"] = json!(1);
    scenario.kubectl.apply(&set).unwrap();
    until_status(&scenario, &json!({"numberAvailable": 4}));
    let watch = Watch::start(&scenario.kubectl, "pods", "app=agent").unwrap();
    watch.until_shown(4, LIMIT).unwrap();
    patch(&scenario, &image("nginx:2"));
    until_status(
        &scenario,
        &json!({"numberAvailable": 4, "updatedNumberScheduled": 4, "numberUnavailable": null}),
    );
    wait::until_true("the old pods are gone", LIMIT, || {
        Ok(scenario.kubectl.list("pods", "app=agent")?.len() == 4)
    })
    .unwrap();
    let mut pods: BTreeMap<String, Value> = BTreeMap::new();
    let mut both = 0;
    for event in watch.stop().unwrap() {
        let pod = &event["object"];
        let name = text(pod, "/metadata/name");
        if event["type"] == "DELETED" {
            pods.remove(&name);
        } else {
            pods.insert(name, pod.clone());
        }
        if pods.len() < 4 {
            // The first ones, one by one.
            continue;
        }
        let mut on: BTreeMap<String, usize> = BTreeMap::new();
        for pod in pods.values().filter(|pod| in_service(pod)) {
            *on.entry(text(pod, "/spec/nodeName")).or_default() += 1;
        }
        assert_eq!(on.len(), 4, "a node is without a ready pod: {on:?}");
        both = both.max(on.values().filter(|count| **count > 1).count());
    }
    assert!(
        (1..=2).contains(&both),
        "half of the nodes at most, and some: {both}"
    );
    assert_eq!(nodes_with(&scenario, "nginx:2"), nodes.names);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_partition_and_a_selector_hold_pods_of_a_daemonset() {
    let scenario = scenario("daemonset-parts");
    let nodes = Nodes::new(&scenario, 4);
    let rolling = json!({"maxUnavailable": 4, "partition": "75%"});
    scenario.kubectl.apply(&agent(&nodes, &rolling)).unwrap();
    until_status(&scenario, &json!({"numberAvailable": 4}));
    let before = uids(&scenario);
    let updated = |count: u32| json!({"numberAvailable": 4, "updatedNumberScheduled": count});
    patch(&scenario, &image("nginx:2"));
    until_status(&scenario, &updated(1));
    wait::observe_for(std::time::Duration::from_secs(2));
    assert_eq!(nodes_with(&scenario, "nginx:2"), nodes.names[3..]);
    let after = uids(&scenario);
    assert!(nodes.names[..3].iter().all(|node| after[node] == before[node]));

    // Only a node that the selector matches.
    let rolling = |fields: Value| json!({"spec": {"updateStrategy": {"rollingUpdate": fields}}});
    patch(
        &scenario,
        &rolling(json!({"partition": 0, "selector": {"matchLabels": {"canary": "yes"}}})),
    );
    nodes.run(&["label", "node", &nodes.names[1], "canary=yes"]);
    until_status(&scenario, &updated(2));
    wait::observe_for(std::time::Duration::from_secs(2));
    let canary = [nodes.names[1].clone(), nodes.names[3].clone()];
    assert_eq!(nodes_with(&scenario, "nginx:2"), canary);

    // Paused, then all.
    patch(&scenario, &rolling(json!({"selector": null, "paused": true})));
    wait::observe_for(std::time::Duration::from_secs(2));
    assert_eq!(nodes_with(&scenario, "nginx:2"), canary);
    patch(&scenario, &rolling(json!({"paused": false})));
    until_status(&scenario, &updated(4));
    assert_eq!(nodes_with(&scenario, "nginx:2"), nodes.names);
}
