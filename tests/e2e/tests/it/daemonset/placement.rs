//! Nodes that join, change and leave.

use serde_json::json;

use super::{Nodes, agent, by_node, uids, until_on, until_status};
use crate::cluster::{explained, scenario, text};

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_daemonset_has_a_pod_on_each_node_and_follows_nodes_that_join_change_and_leave() {
    let scenario = scenario("daemonset-nodes");
    let mut nodes = Nodes::new(&scenario, 3);
    scenario.kubectl.apply(&agent(&nodes, &json!({}))).unwrap();
    let counts = |nodes: u32| {
        json!({"desiredNumberScheduled": nodes, "currentNumberScheduled": nodes, "numberReady": nodes,
               "numberAvailable": nodes, "updatedNumberScheduled": nodes, "numberMisscheduled": 0})
    };
    until_status(&scenario, &counts(3));
    until_on(&scenario, &nodes.names);
    for (node, pod) in by_node(&scenario) {
        let path = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0";
        assert_eq!(text(&pod, path), node, "pinned to its node");
        let tolerations = pod["spec"]["tolerations"].as_array().unwrap();
        let unreachable = tolerations
            .iter()
            .find(|toleration| toleration["key"] == "node.kubernetes.io/unreachable")
            .unwrap();
        assert!(
            unreachable["tolerationSeconds"].is_null(),
            "for ever: {unreachable}"
        );
    }

    let joined = nodes.join();
    until_status(&scenario, &counts(4));
    until_on(&scenario, &nodes.names);

    // A lost pod comes back on its node, and the others stay.
    let before = uids(&scenario);
    let lost = text(&by_node(&scenario)[&joined], "/metadata/name");
    nodes.run(&["delete", "pod", &lost, "--wait=false"]);
    kruise_e2e::wait::until_true("the pod is another one", crate::cluster::LIMIT, || {
        let now = uids(&scenario);
        // A new pod has no node at first.
        Ok(now.keys().eq(before.keys()) && now[&joined] != before[&joined])
    })
    .unwrap();
    let after = uids(&scenario);
    assert!(
        before
            .iter()
            .all(|(node, uid)| *node == joined || after[node] == *uid)
    );

    // Without the label, and with a taint that is not tolerated.
    let [first, second] = [&nodes.names[0], &nodes.names[1]];
    nodes.run(&["label", "node", first, "daemonset-test=none", "--overwrite"]);
    until_status(&scenario, &counts(3));
    nodes.run(&["taint", "node", second, "other=x:NoExecute"]);
    until_status(&scenario, &counts(2));
    until_on(&scenario, &nodes.names[2..]);
    let namespace = scenario.kubectl.namespace().unwrap();
    let why = explained(&scenario, &["daemon/agent", second, "--namespace", namespace]);
    assert!(
        why.contains("has taint other=x:NoExecute, which the template does not tolerate"),
        "{why}"
    );
    assert!(
        !why.contains(first.as_str()) && why.contains("--pod-selector 'app!=agent'"),
        "{why}"
    );
    let group = format!("daemonset-test={}", nodes.group);
    nodes.run(&["label", "node", first, &group, "--overwrite"]);
    nodes.run(&["taint", "node", second, "other-"]);
    until_status(&scenario, &counts(4));

    // A cordoned node keeps its pod, and a node that leaves counts no more.
    nodes.run(&["cordon", first]);
    nodes.run(&["delete", "node", &joined]);
    until_status(&scenario, &counts(3));
    assert!(by_node(&scenario).contains_key(first));
}
