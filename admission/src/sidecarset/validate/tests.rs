//! Each rule with an object that breaks it and nothing else.

use std::path::Path;

use serde_json::{Value, json};

use super::validate;
use crate::sidecarset::complete;
use crate::{Answer, Request};

fn set() -> Value {
    let mut set = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "metadata": {"name": "s"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "containers": [{"name": "c", "image": "c:1"}]},
    });
    complete(&mut set);
    set
}

fn answer(operation: &str, object: &Value, old: &Value) -> Answer {
    let version = object["apiVersion"].as_str().unwrap().rsplit('/').next().unwrap();
    let review = json!({
        "kind": {"group": "apps.kruise.io", "version": version, "kind": "SidecarSet"},
        "operation": operation, "object": object, "oldObject": old,
    });
    validate(&Request::from_review(&review).unwrap())
}

/// The message that refuses it; empty if nothing does.
fn refusal(operation: &str, object: &Value, old: &Value) -> String {
    match answer(operation, object, old) {
        Answer::Allow { .. } => String::new(),
        Answer::Deny { code, message } => {
            assert_eq!(code, 422);
            message
        }
    }
}

/// Puts a value at a path whose last member may be new.
fn with(pointer: &str, value: Value) -> Value {
    let mut set = set();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = set.pointer_mut(parent).unwrap();
    if let Some(list) = parent.as_array_mut() {
        list.push(value);
    } else {
        parent.as_object_mut().unwrap().insert(name.to_owned(), value);
    }
    set
}

#[test]
fn a_stored_flaw_stays_writable_when_its_container_moves_up() {
    let broken = json!({"name": "d", "image": "d:1", "podInjectPolicy": "Nowhere"});
    let mut stored = with("/spec/containers/-", broken);
    complete(&mut stored);
    assert!(refusal("CREATE", &stored, &Value::Null).contains("spec.containers[1]"));
    let mut moved = stored.clone();
    moved["spec"]["containers"].as_array_mut().unwrap().remove(0);
    assert_eq!(refusal("UPDATE", &moved, &stored), "");
}

#[test]
fn sets_that_openkruise_stored_are_in_order() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/upstream");
    for version in ["1.8.4", "1.9.0", "main"] {
        for file in [
            "rest-sidecarsets.json",
            "mid-sidecarsets.v1alpha1.apps.kruise.io.json",
        ] {
            let text = std::fs::read_to_string(root.join(version).join(file)).unwrap();
            for set in serde_json::from_str::<Vec<Value>>(&text).unwrap() {
                assert_eq!(refusal("CREATE", &set, &Value::Null), "", "{version} {file}");
                assert_eq!(refusal("UPDATE", &set, &set), "");
            }
        }
    }
    assert_eq!(refusal("CREATE", &set(), &Value::Null), "");
}

/// Each of these is refused for what it says, and stays writable where it is stored.
fn refused(cases: &[(Value, &str)]) {
    for (broken, says) in cases {
        let found = refusal("CREATE", broken, &Value::Null);
        assert!(found.contains(says), "{says}: {found:?}");
        assert_eq!(
            refusal("UPDATE", broken, broken),
            "",
            "{says}: what is stored stays writable"
        );
    }
}

#[test]
fn selectors_and_strategies_are_checked() {
    refused(&[
        (with("/metadata/name", json!("a.b")), "metadata.name"),
        (with("/metadata/name", json!("a".repeat(64))), "metadata.name"),
        (with("/spec/selector", json!({})), "empty selector is not valid"),
        (with("/spec/selector", Value::Null), "spec.selector: Required"),
        (
            with("/spec/namespaceSelector", json!({})),
            "spec.namespaceSelector",
        ),
        (
            with("/spec/containers", json!([])),
            "no container or initContainer",
        ),
        (
            with("/spec/updateStrategy/partition", json!(-1)),
            "updateStrategy.partition",
        ),
        (
            with("/spec/updateStrategy/maxUnavailable", json!("x")),
            "updateStrategy.maxUnavailable",
        ),
        (
            with("/spec/updateStrategy/selector", json!({})),
            "updateStrategy.selector",
        ),
        (
            with("/spec/updateStrategy/scatterStrategy", json!([{"key": ""}])),
            "scatterStrategy[0].key",
        ),
        (
            with(
                "/spec/updateStrategy/priorityStrategy",
                json!({"orderPriority": [{}]}),
            ),
            "orderedKey",
        ),
        (
            with(
                "/spec/injectionStrategy",
                json!({"revision": {"policy": "Always"}}),
            ),
            "must name a revision",
        ),
        (
            with(
                "/spec/injectionStrategy",
                json!({"revision": {"revisionName": "r", "policy": "Never"}}),
            ),
            "revision.policy",
        ),
        (
            with("/spec/patchPodMetadata", json!([{"patchPolicy": "Retain"}])),
            "annotations: Required",
        ),
        (
            with(
                "/spec/patchPodMetadata",
                json!([{"patchPolicy": "Retain", "annotations": {"a b": ""}}]),
            ),
            "patchPodMetadata[0].annotations",
        ),
        (
            with(
                "/spec/patchPodMetadata",
                json!([{"patchPolicy": "Retain", "annotations": {"k": ""}}, {"patchPolicy": "Retain", "annotations": {"k": ""}}]),
            ),
            "Duplicate value: \"k\"",
        ),
    ]);
}

#[test]
fn containers_are_checked() {
    let field = |path: &str| json!([{"sourceContainerNameFrom": {"fieldRef": {"fieldPath": path}}}]);
    refused(&[
        (
            with("/spec/containers/0/podInjectPolicy", json!("Middle")),
            "podInjectPolicy",
        ),
        (
            with("/spec/containers/0/shareVolumePolicy", json!({"type": "maybe"})),
            "shareVolumePolicy.type",
        ),
        (
            with("/spec/containers/0/transferEnv", field("metadata.name")),
            "fieldRef.fieldPath",
        ),
        (
            with("/spec/containers/0/image", json!("")),
            "spec.containers[0].image: Required",
        ),
        (
            with(
                "/spec/containers/0/volumeMounts",
                json!([{"name": "v", "mountPath": "/v"}]),
            ),
            "spec.containers[0].volumeMounts[0].name: Not found",
        ),
        (
            with("/spec/initContainers", json!([{"name": "c", "image": "c"}])),
            "Duplicate value: \"c\"",
        ),
        (
            with(
                "/spec/initContainers",
                json!([{"name": "i", "image": "i", "resourcesPolicy": {}}]),
            ),
            "only for init containers that keep running",
        ),
        (
            with(
                "/spec/initContainers",
                json!([{"name": "i", "image": "i", "restartPolicy": "Always"}]),
            ),
            "use NotUpdate",
        ),
    ]);
}

#[test]
fn computed_resources_are_checked() {
    let policy = |own: Value| {
        let mut policy = json!({"targetContainersMode": "sum", "targetContainersNameRegex": ".*",
            "resourcesExpr": {"limits": {"cpu": "cpu"}}});
        policy
            .as_object_mut()
            .unwrap()
            .extend(own.as_object().unwrap().clone());
        with("/spec/containers/0/resourcesPolicy", policy)
    };
    refused(&[
        (
            policy(json!({"targetContainersNameRegex": "("})),
            "targetContainersNameRegex",
        ),
        (
            policy(json!({"targetContainersMode": "avg"})),
            "targetContainersMode",
        ),
        (policy(json!({"resourcesExpr": {}})), "limits or requests"),
        (
            policy(json!({"resourcesExpr": {"limits": {"cpu": "cpu*cpu"}}})),
            "have no '*'",
        ),
        (
            policy(json!({"resourcesExpr": {"limits": {"cpu": "50foo"}}})),
            "cannot be read",
        ),
    ]);
}

#[test]
fn expressions_that_some_pods_satisfy_pass() {
    for expression in ["memory-100Mi", "max(memory*33%, 100Mi)", "Memory*50%", "200Mi"] {
        let policy = json!({"targetContainersMode": "max", "targetContainersNameRegex": ".*",
            "resourcesExpr": {"requests": {"memory": expression}}});
        let set = with("/spec/containers/0/resourcesPolicy", policy);
        assert_eq!(refusal("CREATE", &set, &Value::Null), "", "{expression}");
    }
}

#[test]
fn a_partition_excludes_a_selector_only_when_it_is_set() {
    let selected = |partition: Value| {
        let mut set = with(
            "/spec/updateStrategy/selector",
            json!({"matchLabels": {"x": "y"}}),
        );
        set["spec"]["updateStrategy"]["partition"] = partition;
        refusal("CREATE", &set, &Value::Null)
    };
    assert_eq!(selected(json!(0)), "");
    assert!(selected(json!("0%")).contains("exclude each other"));
    assert!(selected(json!(1)).contains("exclude each other"));
}

#[test]
fn native_sidecars_pass_where_nothing_is_upgraded_in_place() {
    let mut set = with(
        "/spec/initContainers",
        json!([{"name": "i", "image": "i", "restartPolicy": "Always"}]),
    );
    assert!(refusal("CREATE", &set, &Value::Null).contains("use NotUpdate"));
    set["spec"]["updateStrategy"] = json!({"type": "NotUpdate", "partition": -1});
    assert_eq!(refusal("CREATE", &set, &Value::Null), "");
}

#[test]
fn containers_may_go_but_not_come_and_keep_their_kind_of_upgrade() {
    let two = with("/spec/containers/-", json!({"name": "d", "image": "d:1"}));
    assert_eq!(refusal("UPDATE", &set(), &two), "");
    assert!(refusal("UPDATE", &two, &set()).contains("is not found in the stored set"));
    let hot = with(
        "/spec/containers/0/upgradeStrategy",
        json!({"upgradeType": "HotUpgrade"}),
    );
    assert!(refusal("UPDATE", &hot, &set()).contains("upgradeType"));
    let bare = with("/spec/containers/0/upgradeStrategy", json!({}));
    assert_eq!(refusal("UPDATE", &hot, &bare), "");
}

#[test]
fn a_canary_has_a_base_that_stays_and_upgrades_nothing() {
    let canary = |base: &str, kind: &str| {
        let mut set = set();
        set["metadata"]["annotations"] = json!({
            "apps.kruise.io/sidecarset-canary": "true", "apps.kruise.io/sidecarset-base": base,
        });
        set["spec"]["updateStrategy"] = json!({"type": kind});
        set
    };
    let good = canary("base", "NotUpdate");
    assert_eq!(refusal("CREATE", &good, &Value::Null), "");
    assert!(refusal("CREATE", &canary("s", "NotUpdate"), &Value::Null).contains("of itself"));
    assert!(refusal("CREATE", &canary("base", "RollingUpdate"), &Value::Null).contains("use NotUpdate"));
    assert!(refusal("UPDATE", &canary("other", "NotUpdate"), &good).contains("cannot be changed"));
}
