//! A pod of a StatefulSet on a node: an update in place keeps its address, its host name and its claim.

use kruise_e2e::wait;
use serde_json::{Value, json};

use super::runtime::version;
use super::{WEB, identity, on_nodes};
use crate::claims::storage_class;
use crate::cluster::{LIMIT, text};

const SETS: &str = "statefulsets.v1beta1.apps.kruise.io";

fn containers(image: &str) -> Value {
    json!([{"name": "main", "image": image, "volumeMounts": [{"name": "data", "mountPath": "/data"}]}])
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn a_new_image_of_a_statefulset_keeps_address_host_and_claim() {
    let on = on_nodes("nodes-statefulset");
    let kubectl = &on.scenario.kubectl;
    storage_class(&on.scenario);
    let set = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "metadata": {"name": "web"},
        "spec": {
            "replicas": 2, "serviceName": "web", "selector": {"matchLabels": {"app": "web"}},
            "updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "terminationGracePeriodSeconds": 5, "containers": containers(WEB),
                    "readinessGates": [{"conditionType": "InPlaceUpdateReady"}],
                },
            },
            "volumeClaimTemplates": [{
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "host-path",
                         "resources": {"requests": {"storage": "1Gi"}}},
            }],
        },
    });
    kubectl.apply(&set).unwrap();
    let until_updated = || {
        wait::until_true("both pods are updated and in service", LIMIT, || {
            let set = kubectl.get(SETS, "web")?;
            let status = &set["status"];
            Ok(status["observedGeneration"] == set["metadata"]["generation"]
                && status["replicas"] == 2
                && status["updatedReadyReplicas"] == 2)
        })
        .unwrap();
    };
    let by_name = |mut objects: Vec<Value>| {
        objects.sort_by_key(|object| text(object, "/metadata/name"));
        objects
    };
    let claims = || -> Vec<Value> {
        let claims = by_name(kubectl.list("persistentvolumeclaims", "app=web").unwrap());
        let part = |claim: Value| json!([claim["metadata"]["uid"], claim["spec"]["volumeName"]]);
        claims.into_iter().map(part).collect()
    };
    until_updated();
    let (before, bound) = (by_name(on.scenario.pods()), claims());
    assert!(before.iter().all(|pod| version(pod).as_deref() == Some("1")));
    assert_eq!(bound.len(), 2);

    let image = json!({"spec": {"template": {"spec": {"containers": containers("lab.test/web:2")}}}});
    kubectl.patch(SETS, "web", &image).unwrap();
    until_updated();
    let after = by_name(on.scenario.pods());
    for (index, (old, new)) in before.iter().zip(&after).enumerate() {
        assert_eq!(identity(new), identity(old));
        assert_eq!(new["spec"]["hostname"], format!("web-{index}"));
        assert_eq!(new["spec"]["volumes"], old["spec"]["volumes"]);
        assert_eq!(version(new).as_deref(), Some("2"));
    }
    assert_eq!(claims(), bound);
}
