//! An agent on every node that listens on a port of its node: an update in place keeps the port, though no second
//! pod of it would find room there.

use kruise_e2e::wait;
use serde_json::{Value, json};

use super::runtime::version_at;
use super::{WEB, identity, on_nodes};
use crate::cluster::{LIMIT, text};

const SETS: &str = "daemonsets.v1beta1.apps.kruise.io";
/// Of the nodes, which are on this machine, each with an address of its own.
const PORT: u16 = 18_080;

fn containers(image: &str) -> Value {
    json!([{
        "name": "main", "image": image,
        "ports": [{"containerPort": PORT, "hostPort": PORT}],
        "env": [
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}},
            {"name": "PORT", "value": format!("$(NODE):{PORT}")},
        ],
    }])
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn a_host_port_agent_is_updated_in_place_and_its_port_answers_on_every_node() {
    let on = on_nodes("nodes-daemonset");
    let kubectl = &on.scenario.kubectl;
    let set = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "DaemonSet", "metadata": {"name": "agent"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "updateStrategy": {"rollingUpdate": {"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": 1}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {
                    "hostNetwork": true, "nodeSelector": {"type": "real"},
                    "terminationGracePeriodSeconds": 5, "containers": containers(WEB),
                },
            },
        },
    });
    let nodes = kubectl.list("nodes", "type=real").unwrap().len();
    assert!(nodes >= 3, "{nodes} nodes");
    kubectl.apply(&set).unwrap();
    let until_updated = || {
        wait::until_true("every pod is updated and available", LIMIT, || {
            let set = kubectl.get(SETS, "agent")?;
            let status = &set["status"];
            let counts = [
                "desiredNumberScheduled",
                "updatedNumberScheduled",
                "numberAvailable",
            ];
            Ok(status["observedGeneration"] == set["metadata"]["generation"]
                && counts.iter().all(|count| status[*count] == nodes))
        })
        .unwrap();
    };
    let by_node = || -> Vec<Value> {
        let mut pods = on.scenario.pods_of("agent");
        pods.sort_by_key(|pod| text(pod, "/spec/nodeName"));
        pods
    };
    let served = |pods: &[Value]| -> Vec<String> {
        let answers = pods.iter().filter_map(|pod| version_at(pod, PORT));
        answers.collect()
    };
    until_updated();
    let before = by_node();
    assert_eq!(served(&before), vec!["1"; nodes]);
    let addresses: std::collections::BTreeSet<String> =
        before.iter().map(|pod| text(pod, "/status/hostIP")).collect();
    assert_eq!(addresses.len(), nodes, "each port is that of another node");

    let image = json!({"spec": {"template": {"spec": {"containers": containers("lab.test/web:2")}}}});
    kubectl.patch(SETS, "agent", &image).unwrap();
    until_updated();
    let after = by_node();
    let identities = |pods: &[Value]| pods.iter().map(identity).collect::<Vec<_>>();
    assert_eq!(identities(&after), identities(&before));
    assert_eq!(served(&after), vec!["2"; nodes]);
}
