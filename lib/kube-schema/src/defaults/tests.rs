use std::path::Path;

use go_compat::pod_template::{canonical_claim, canonical_pod_template};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{HostPorts, Options, claim, pod_template};

fn defaulted(template: &Value) -> Value {
    let mut template = template.clone();
    pod_template(&mut template, Options::default());
    template
}

/// The sets upstream stored, beside the manifests they were applied from.
fn applied_and_stored() -> Vec<(Value, Value)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/upstream");
    let mut pairs = Vec::new();
    for file in [
        "1.8.4/rest-clonesets.v1alpha1.apps.kruise.io.json",
        "1.9.0/rest-clonesets.json",
        "main/rest-clonesets.json",
    ] {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        let stored: Vec<Value> = serde_json::from_str(&text).unwrap();
        for set in stored {
            let applied = &set["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"];
            pairs.push((serde_json::from_str(applied.as_str().unwrap()).unwrap(), set));
        }
    }
    pairs
}

#[test]
fn applied_manifests_become_what_upstream_stored() {
    let pairs = applied_and_stored();
    assert!(pairs.len() >= 12, "only {} sets compared", pairs.len());
    for (applied, stored) in pairs {
        assert_eq!(
            canonical_pod_template(&defaulted(&applied["spec"]["template"])),
            canonical_pod_template(&stored["spec"]["template"]),
            "{}",
            stored["metadata"]["name"]
        );
        let canonical = |claims: &[Value]| claims.iter().map(canonical_claim).collect::<Vec<_>>();
        let mut claims = applied["spec"]["volumeClaimTemplates"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        claims.iter_mut().for_each(claim);
        let stored = stored["spec"]["volumeClaimTemplates"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        assert_eq!(canonical(&claims), canonical(&stored));
    }
}

#[test]
fn only_regular_containers_always_pull() {
    let template = defaulted(&json!({"spec": {
        "containers": [{"image": "nginx:1.25"}, {"image": "nginx:1.25", "imagePullPolicy": "Never"}],
        "initContainers": [{"image": "busybox:1.36"}, {"image": "busybox"}],
    }}));
    let policies = |list: &str| -> Vec<Value> {
        let list = template["spec"][list].as_array().unwrap();
        list.iter()
            .map(|container| container["imagePullPolicy"].clone())
            .collect()
    };
    assert_eq!(policies("containers"), ["Always", "Never"]);
    assert_eq!(policies("initContainers"), ["IfNotPresent", "Always"]);
}

#[test]
fn volumes_get_modes_types_and_sources() {
    let template = defaulted(&json!({"spec": {"volumes": [
        {"name": "none"},
        {"name": "null", "hostPath": null},
        {"name": "new", "fromTheFuture": {}},
        {"name": "host", "hostPath": {"path": "/"}},
        {"name": "secret", "secret": {"secretName": "s", "defaultMode": 0}},
        {"name": "all", "projected": {"sources": [
            {"serviceAccountToken": {"path": "t"}},
            {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        ]}},
        {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
    ]}}));
    assert_eq!(
        template["spec"]["volumes"],
        json!([
            {"name": "none", "emptyDir": {}},
            {"name": "null", "hostPath": null, "emptyDir": {}},
            {"name": "new", "fromTheFuture": {}},
            {"name": "host", "hostPath": {"path": "/", "type": ""}},
            {"name": "secret", "secret": {"secretName": "s", "defaultMode": 0}},
            {"name": "all", "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}},
                {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v1"}}]}},
            ]}},
            {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": {"volumeMode": "Filesystem"}}}},
        ])
    );
}

#[test]
fn host_ports_are_copied_only_when_asked() {
    let ports = json!([{"containerPort": 80}, {"containerPort": 81, "hostPort": 8081}]);
    let template = json!({"spec": {"hostNetwork": true, "containers": [{"ports": ports}]}});
    let container = |options| {
        let mut template = template.clone();
        pod_template(&mut template, options);
        let ports = template["spec"]["containers"][0]["ports"].as_array().unwrap();
        ports
            .iter()
            .map(|port| port["hostPort"].as_i64())
            .collect::<Vec<_>>()
    };
    assert_eq!(container(Options::default()), [None, Some(8081)]);
    assert_eq!(
        container(Options {
            host_ports: HostPorts::Copy
        }),
        [Some(80), Some(8081)]
    );
}

#[test]
fn fine_quantities_are_rounded_and_others_keep_their_spelling() {
    let template = defaulted(&json!({"spec": {"containers": [
        {"resources": {"limits": {"cpu": "0.0001", "memory": "1024Mi"}, "requests": {"cpu": "0.5", "memory": "bad"}}},
    ]}}));
    assert_eq!(
        template["spec"]["containers"][0]["resources"],
        json!({"limits": {"cpu": "1m", "memory": "1024Mi"}, "requests": {"cpu": "0.5", "memory": "bad"}})
    );
}

#[test]
fn zero_grace_period_is_a_choice() {
    let template = defaulted(&json!({"spec": {"terminationGracePeriodSeconds": 0}}));
    assert_eq!(template["spec"]["terminationGracePeriodSeconds"], 0);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-1_i64..2).prop_map(Value::from),
        "(|1|1u|nginx|nginx:1|Always)".prop_map(Value::from),
    ];
    let name = "(containers|name|image|imagePullPolicy|volumes|env|ports|resources|limits|cpu|emptyDir|hostPath|secret|\
                livenessProbe|httpGet|hostNetwork|containerPort|securityContext)";
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::btree_map(name, inner, 0..6).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn defaulting_twice_changes_nothing(spec in any_json()) {
        let options = Options { host_ports: HostPorts::Copy };
        let mut template = json!({"spec": spec});
        pod_template(&mut template, options);
        let once = template.clone();
        pod_template(&mut template, options);
        prop_assert_eq!(template, once);
    }
}
