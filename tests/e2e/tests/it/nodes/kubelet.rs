//! What a kubelet reports, where others act on it or show it.

use kruise_e2e::wait;
use serde_json::{Value, json};

use super::{WEB, on_nodes};
use crate::cluster::LIMIT;

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn closed_and_missing_gates_are_named_in_the_message_of_ready() {
    let on = on_nodes("nodes-gates");
    let kubectl = &on.scenario.kubectl;
    let gates = ["lab.test/Closed", "lab.test/Missing", "lab.test/Open"];
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "gated"},
        "spec": {
            "terminationGracePeriodSeconds": 5,
            "readinessGates": gates.map(|gate| json!({"conditionType": gate})),
            "containers": [{"name": "main", "image": WEB}],
        },
    });
    kubectl.apply(&pod).unwrap();
    let conditions = json!({"status": {"conditions": [
        {"type": gates[0], "status": "False"},
        {"type": gates[2], "status": "True"},
    ]}});
    let patch = conditions.to_string();
    kubectl
        .run(&[
            "patch",
            "pod",
            "gated",
            "--subresource=status",
            "--type=strategic",
            "-p",
            &patch,
        ])
        .unwrap();
    let ready = wait::until("the kubelet waits for the gates alone", LIMIT, || {
        let pod = kubectl.get("pod", "gated")?;
        let conditions: Vec<Value> = pod["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let condition = |kind| {
            conditions
                .iter()
                .find(|condition| condition["type"] == kind)
                .cloned()
        };
        let serves = condition("ContainersReady").is_some_and(|condition| condition["status"] == "True");
        Ok(condition("Ready").filter(|ready| serves && ready["reason"] == "ReadinessGatesNotReady"))
    })
    .unwrap();
    assert_eq!(ready["status"], "False");
    // The words of the simulated kubelet, too.
    assert_eq!(
        ready["message"],
        "the status of pod readiness gate \"lab.test/Closed\" is not \"True\", but False, corresponding condition of \
         pod readiness gate \"lab.test/Missing\" does not exist."
    );
}
