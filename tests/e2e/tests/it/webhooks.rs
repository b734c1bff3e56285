//! What the API server refuses on our word, with the path of the field.

use serde_json::{Value, json};

use crate::cluster::{scenario, web};

#[test]
fn each_broken_rule_is_refused_with_its_field() {
    let Some(scenario) = scenario("webhooks") else {
        return;
    };
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
fn the_selector_cannot_change() {
    let Some(scenario) = scenario("selector") else {
        return;
    };
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
