//! What the older version says in other words, and protection from deletion.

use serde_json::{Value, json};

use super::{Nodes, SETS, agent, patch, until_status};
use crate::cluster::{scenario, scenario_gated};

const OLDER: &str = "daemonsets.v1alpha1.apps.kruise.io";
const ANNOTATION: &str = "daemonset.kruise.io/progressive-create-pod";

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn partitioned_scaling_that_is_switched_off_stays_off_though_the_older_version_is_written() {
    let scenario = scenario("daemonset-versions");
    let nodes = Nodes::new(&scenario, 0);
    let mut set = agent(&nodes, &json!({"partition": 1}));
    set["apiVersion"] = json!("apps.kruise.io/v1alpha1");
    set["metadata"]["annotations"] = json!({ANNOTATION: "true"});
    scenario.kubectl.apply(&set).unwrap();
    let partitioned = || -> Value {
        let set = scenario.kubectl.get(SETS, "agent").unwrap();
        set["spec"]["scaleStrategy"]["partitionedScaling"].clone()
    };
    let annotation = || -> Value {
        let set = scenario.kubectl.get(OLDER, "agent").unwrap();
        set["metadata"]["annotations"][ANNOTATION].clone()
    };
    assert_eq!((partitioned(), annotation()), (json!(true), json!("true")));
    let off = json!({"spec": {"scaleStrategy": {"partitionedScaling": false}}});
    patch(&scenario, &off);
    assert_eq!(annotation(), Value::Null);
    let edit = json!({"spec": {"minReadySeconds": 5}});
    scenario.kubectl.patch(OLDER, "agent", &edit).unwrap();
    assert_ne!(partitioned(), json!(true));
    patch(
        &scenario,
        &json!({"spec": {"scaleStrategy": {"partitionedScaling": true}}}),
    );
    assert_eq!(annotation(), json!("true"));
    patch(&scenario, &off);
    let set = scenario.kubectl.get(SETS, "agent").unwrap();
    assert_eq!(set["spec"]["minReadySeconds"], 5);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn with_the_feature_gate_a_protected_daemonset_is_kept_while_nodes_want_its_pods() {
    let scenario = scenario_gated("daemonset-protected");
    let nodes = Nodes::new(&scenario, 2);
    let protect = |how: Value| {
        let labels = json!({"metadata": {"labels": {"policy.kruise.io/delete-protection": how}}});
        patch(&scenario, &labels);
    };
    let delete = ["delete", SETS, "agent", "--wait=false"];
    let refused = |because: &str| {
        let refusal = scenario.kubectl.refused(&delete, "").unwrap();
        let expected = format!(
            "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection={because}"
        );
        assert!(refusal.contains(&expected), "{refusal}");
    };
    scenario.kubectl.apply(&agent(&nodes, &json!({}))).unwrap();
    until_status(&scenario, &json!({"numberAvailable": 2}));
    protect(json!("Always"));
    refused("Always");
    protect(json!("Cascading"));
    refused("Cascading and nodes 2>0");
    // Without a node that fits, there is nothing to lose.
    patch(
        &scenario,
        &json!({"spec": {"template": {"spec": {"nodeSelector": {"no": "node"}}}}}),
    );
    until_status(&scenario, &json!({"desiredNumberScheduled": 0}));
    scenario.kubectl.run(&delete).unwrap();
}
