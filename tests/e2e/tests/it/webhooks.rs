//! What the API server refuses on our word, with the path of the field.

use serde_json::{Value, json};

use crate::cluster::{scenario, web};

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn each_broken_rule_is_refused_with_its_field() {
    let scenario = scenario("webhooks");
    let cases: [(&str, Value, &str); 5] = [
        ("/spec/replicas", json!(-1), "spec.replicas"),
        (
            "/spec/updateStrategy/type",
            json!("Sometimes"),
            "spec.updateStrategy",
        ),
        (
            "/spec/updateStrategy/maxUnavailable",
            json!("many"),
            "maxUnavailable",
        ),
        (
            "/spec/selector/matchLabels/app",
            json!("other"),
            "spec.template.metadata.labels",
        ),
        (
            "/spec/template/spec/containers/0/name",
            json!("Not_A_Name"),
            "spec.template.spec.containers[0].name",
        ),
    ];
    for (pointer, value, field) in cases {
        let mut set = web(1);
        *set.pointer_mut(pointer).unwrap() = value;
        let error = scenario
            .kubectl
            .refused(&["create", "-f", "-"], &set.to_string())
            .unwrap();
        assert!(error.contains(field), "{pointer}: {error}");
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn the_selector_cannot_change() {
    let scenario = scenario("selector");
    scenario.kubectl.apply(&web(0)).unwrap();
    let mut set = web(0);
    for pointer in [
        "/spec/selector/matchLabels/app",
        "/spec/template/metadata/labels/app",
    ] {
        *set.pointer_mut(pointer).unwrap() = json!("other");
    }
    assert!(
        scenario
            .kubectl
            .refused(&["apply", "-f", "-"], &set.to_string())
            .unwrap()
            .contains("spec")
    );
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_sidecarset_gets_defaults_and_hashes_and_is_refused_with_its_field() {
    let scenario = scenario("sidecarset-webhooks");
    // the kind has no namespaces, so the name must be its own; the selector matches no pod of anybody
    let set = |image: &str| {
        json!({
            "apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "webhooks-of-e2e"},
            "spec": {
                "selector": {"matchLabels": {"webhooks-of-e2e": "none"}},
                "containers": [{"name": "logger", "image": image}],
            },
        })
    };
    let error = scenario
        .kubectl
        .refused(&["create", "-f", "-"], &set("").to_string())
        .unwrap();
    assert!(error.contains("spec.containers[0].image"), "{error}");
    scenario.kubectl.apply(&set("busybox:1.36")).unwrap();
    let stored = scenario
        .kubectl
        .get("sidecarsets.v1beta1.apps.kruise.io", "webhooks-of-e2e")
        .unwrap();
    let annotations = &stored["metadata"]["annotations"];
    assert_eq!(
        annotations["kruise.io/sidecarset-hash"],
        "v74454b9v25ccc9v27z654fzz4czxf8w67b2b4dc8458c4f54d649f7v4c6v69ff"
    );
    assert_eq!(
        annotations["kruise.io/sidecarset-hash-without-image"],
        "54wdczcvf9fwd2bcvz4xw79dc4wzvb882244vbb4w2b6wwxv8b9zddf2752f7x99"
    );
    assert_eq!(
        stored["spec"]["containers"][0]["podInjectPolicy"],
        "BeforeAppContainer"
    );
    assert_eq!(stored["spec"]["updateStrategy"]["type"], "RollingUpdate");
    scenario
        .kubectl
        .run(&["delete", "sidecarset", "webhooks-of-e2e"])
        .unwrap();
}
