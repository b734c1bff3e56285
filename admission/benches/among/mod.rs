//! Many SidecarSets, and pods that two of them are for: what is measured here and in the bench of the whole webhook.

use serde_json::{Value, json};

/// SidecarSets, two of which are for each pod.
pub const SETS: usize = 200;

/// One of them, complete.
pub fn set(index: usize) -> Value {
    let labels = if index % 100 == 7 {
        json!({"app": "web"})
    } else {
        json!({"app": format!("app-{index}")})
    };
    let mut set = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet", "metadata": {"name": format!("s{index:03}")},
        "spec": {
            "selector": {"matchLabels": labels},
            "containers": [{
                "name": format!("agent-{index}"), "image": "agent:1", "shareVolumePolicy": {"type": "enabled"},
                "volumeMounts": [{"name": "spool", "mountPath": "/spool"}],
                "transferEnv": [{"sourceContainerName": "c0", "envNames": ["V1", "V2"]}],
            }],
            "volumes": [{"name": "spool", "emptyDir": {}}],
        },
    });
    kruise_admission::sidecarset::complete(&mut set);
    set
}

/// The specification of a pod of three containers, with ten variables of this value each.
pub fn pod_spec(value: &str) -> Value {
    let variables: Vec<Value> = (0..10)
        .map(|index| json!({"name": format!("V{index}"), "value": value}))
        .collect();
    let containers: Vec<Value> = (0..3)
        .map(|index| {
            json!({"name": format!("c{index}"), "image": "main:1", "env": variables,
                   "volumeMounts": [{"name": "data", "mountPath": "/data"}]})
        })
        .collect();
    json!({"containers": containers, "volumes": [{"name": "data", "emptyDir": {}}]})
}
