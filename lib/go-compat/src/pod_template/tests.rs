use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    CoreType, canonical_claim, canonical_pod_template, claim_templates_hash, known_pod_template,
    revision_data,
};
use crate::revision::revision_hash;

fn web() -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{
            "name": "main",
            "image": "nginx:1.25",
            "env": [
                {"name": "Z", "value": "a<b&c"},
                {"name": "CFG", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
            ],
        }]},
    })
}

#[test]
fn revision_data_is_a_replacing_patch() {
    let data = revision_data(&web());
    assert_eq!(
        data,
        r#"{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,"labels":{"app":"web"}},"spec":{"containers":[{"env":[{"name":"Z","value":"a\u003cb\u0026c"},{"name":"CFG","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['app']"}}}],"image":"nginx:1.25","name":"main","resources":{}}]}}}}"#
    );
    assert_eq!(revision_hash(data.as_bytes(), Some(0)), "8496695bb6");
}

#[test]
fn hash_of_a_defaulted_template() {
    let mut template = web();
    let spec = template["spec"].as_object_mut().unwrap();
    spec.insert("dnsPolicy".into(), "ClusterFirst".into());
    spec.insert("restartPolicy".into(), "Always".into());
    spec.insert("schedulerName".into(), "default-scheduler".into());
    spec.insert("securityContext".into(), json!({}));
    spec.insert("terminationGracePeriodSeconds".into(), 30.into());
    let container = &mut template["spec"]["containers"][0];
    container["imagePullPolicy"] = "Always".into();
    container["terminationMessagePath"] = "/dev/termination-log".into();
    container["terminationMessagePolicy"] = "File".into();
    container["env"][1]["valueFrom"]["fieldRef"]["apiVersion"] = "v1".into();
    let data = revision_data(&template);
    assert_eq!(revision_hash(data.as_bytes(), Some(0)), "7c4ff9b74f");
    assert_eq!(revision_hash(data.as_bytes(), Some(1)), "7c4ff9b74d");
}

#[test]
fn empty_members_vanish_and_plain_structs_appear() {
    let template = json!({
        "metadata": {"labels": {}, "annotations": null, "name": ""},
        "spec": {
            "hostNetwork": false,
            "nodeSelector": {},
            "terminationGracePeriodSeconds": 0,
            "securityContext": {},
            "volumes": [
                {"name": "tmp", "emptyDir": {}},
                {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": []}}}},
            ],
            "containers": [{
                "name": "main",
                "command": [],
                "stdin": false,
                "ports": [{"name": "http"}],
                "livenessProbe": {"httpGet": {"path": ""}, "periodSeconds": 0},
                "env": [
                    {"name": "E", "value": ""},
                    {"name": "R", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                ],
                "resources": {"limits": {"cpu": "1000m", "memory": 1_500_000_000}, "requests": {}},
            }],
        },
    });
    assert_eq!(
        canonical_pod_template(&template),
        json!({
            "metadata": {"creationTimestamp": null},
            "spec": {
                "terminationGracePeriodSeconds": 0,
                "securityContext": {},
                "volumes": [
                    {"name": "tmp", "emptyDir": {}},
                    {"name": "own", "ephemeral": {"volumeClaimTemplate": {
                        "metadata": {"creationTimestamp": null}, "spec": {"resources": {}},
                    }}},
                ],
                "containers": [{
                    "name": "main",
                    "ports": [{"name": "http", "containerPort": 0}],
                    "livenessProbe": {"httpGet": {"port": 0}},
                    "env": [
                        {"name": "E"},
                        {"name": "R", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}}},
                    ],
                    "resources": {"limits": {"cpu": "1", "memory": "1500M"}},
                }],
            },
        })
    );
}

#[test]
fn unknown_fields_survive_everywhere() {
    let mut template = canonical_pod_template(&web());
    template["spec"]["fromTheFuture"] = json!({"x": [1, {"y": null}]});
    template["spec"]["containers"][0]["alsoNew"] = json!("");
    assert_eq!(canonical_pod_template(&template), template);
    assert!(revision_data(&template).contains(r#""fromTheFuture":{"x":[1,{"y":null}]}"#));
}

#[test]
fn missing_lists_that_go_always_writes_are_null() {
    assert_eq!(
        canonical_pod_template(&json!({})),
        json!({"metadata": {"creationTimestamp": null}, "spec": {"containers": null}})
    );
}

#[test]
fn claims_are_hashed_by_name_and_spec() {
    let claim = json!({
        "metadata": {"name": "data", "labels": {"k": "v"}},
        "spec": {"resources": {"requests": {"storage": "1024Mi"}}, "accessModes": ["ReadWriteOnce"]},
        "status": {"phase": "Pending"},
    });
    assert_eq!(claim_templates_hash(std::slice::from_ref(&claim)), "3636919212");
    assert_eq!(claim_templates_hash(&[]), "");
    let mut other = claim.clone();
    other["metadata"]["name"] = "a".into();
    assert_eq!(
        claim_templates_hash(&[claim.clone(), other.clone()]),
        claim_templates_hash(&[other, claim])
    );
}

#[test]
fn claims_keep_their_status() {
    let claim =
        json!({"metadata": {"name": "data"}, "spec": {"resources": {}}, "status": {"phase": "Pending"}});
    let mut expected = claim.clone();
    expected["metadata"]["creationTimestamp"] = Value::Null;
    assert_eq!(canonical_claim(&claim), expected);
}

#[test]
fn containers_are_written_in_field_order() {
    let container =
        json!({"resources": {}, "image": "nginx", "env": [{"value": "1", "name": "A"}], "name": "main"});
    assert_eq!(
        CoreType::Container.typed_json(&container),
        r#"{"name":"main","image":"nginx","env":[{"name":"A","value":"1"}],"resources":{}}"#
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2_i64..3).prop_map(Value::from),
        "(|1|0|1000m|0.50|x)".prop_map(Value::from),
    ];
    let name = "(metadata|spec|containers|name|labels|volumes|env|ports|resources|limits|cpu|emptyDir|sizeLimit|new)";
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::btree_map(name, inner, 0..5).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn canonicalising_twice_changes_nothing(spec in any_json(), metadata in any_json()) {
        let once = canonical_pod_template(&json!({"metadata": metadata, "spec": spec}));
        prop_assert_eq!(canonical_pod_template(&once), once);
    }
}

#[test]
fn the_known_part_of_a_template_is_what_the_types_have() {
    let novel = json!({"metadata": {"labels": {"app": "web"}, "novel": 1}, "spec": {
        "hostnameOverride": "x", "restartPolicy": "Always", "nodeSelector": {"any": "key"},
        "containers": [{"name": "main", "novel": {"a": [1]}, "ports": [{"containerPort": 80, "novel": true}]}],
    }});
    let known = json!({"metadata": {"labels": {"app": "web"}}, "spec": {
        "restartPolicy": "Always", "nodeSelector": {"any": "key"},
        "containers": [{"name": "main", "ports": [{"containerPort": 80}]}],
    }});
    let canonical = canonical_pod_template(&novel);
    assert_eq!(known_pod_template(&canonical), canonical_pod_template(&known));
    assert_eq!(
        known_pod_template(&canonical_pod_template(&known)),
        canonical_pod_template(&known)
    );
}
