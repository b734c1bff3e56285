//! Pods that OpenKruise made are made again; and what holds for any pod and any sets.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{HASH, applied, inject, known, names, pod, request, set, sidecar};
use crate::Options;
use crate::pod::review;
use crate::pod::sidecars::{SetDecision, decisions};

fn fixture(version: &str, name: &str) -> Vec<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/upstream");
    serde_json::from_str(&std::fs::read_to_string(root.join(version).join(name)).unwrap()).unwrap()
}

/// The pod as it was before OpenKruise saw it.
fn without_sidecars(stored: &Value) -> Value {
    let mut pod = stored.clone();
    pod["metadata"].as_object_mut().unwrap().remove("annotations");
    pod.as_object_mut().unwrap().remove("status");
    let spec = pod["spec"].as_object_mut().unwrap();
    spec.remove("initContainers");
    for (list, name) in [("containers", "main"), ("volumes", "web")] {
        spec[list]
            .as_array_mut()
            .unwrap()
            .retain(|one| one["name"] == name);
    }
    pod
}

#[test]
fn pods_come_out_as_three_versions_of_openkruise_made_them() {
    let mut seen = 0;
    for version in ["1.8.4", "1.9.0", "main"] {
        for file in [
            "rest-sidecarsets.json",
            "rest-sidecarsets.v1alpha1.apps.kruise.io.json",
        ] {
            let set = fixture(version, file).remove(0);
            for mut stored in fixture(version, "rest-pods.json") {
                let Some(record) = stored["metadata"]["annotations"][HASH].as_str() else {
                    continue;
                };
                let record: Value = serde_json::from_str(record).unwrap();
                let mut set = set.clone();
                if record["logs"].get("controllerRevision").is_none() {
                    set["status"] = Value::Null;
                }
                let pod = without_sidecars(&stored);
                let mut request = request(&pod, "u");
                request.now = record["logs"]["updateTimestamp"]
                    .as_str()
                    .unwrap()
                    .parse()
                    .unwrap();
                let found = applied(&pod, review(&request, Options::default(), &known(&[set])));
                stored.as_object_mut().unwrap().remove("status");
                assert_eq!(found, stored, "{version}");
                seen += 1;
            }
        }
    }
    assert_eq!(seen, 12);
}

prop_compose! {
    fn any_set()(
        name in "[a-d]", position in prop_oneof![Just("BeforeAppContainer"), Just("AfterAppContainer")],
        sidecars in prop::collection::vec("[a-f]", 0..3), inits in prop::collection::vec("[g-k]", 0..2),
        hot in any::<bool>(), share in any::<bool>(), matches in prop::bool::weighted(0.8),
    ) -> Value {
        let upgrade = if hot { "HotUpgrade" } else { "ColdUpgrade" };
        let share = if share { "enabled" } else { "disabled" };
        let one = |one: &String| sidecar(one, position, json!({
            "upgradeStrategy": {"upgradeType": upgrade, "hotUpgradeEmptyImage": "e"},
            "shareVolumePolicy": {"type": share}, "newer": {"x": name},
            "volumeMounts": [{"name": "v", "mountPath": format!("/{one}")}],
            "transferEnv": [{"sourceContainerName": "main", "envNames": ["A"]}],
        }));
        let unique = |list: Vec<String>| list.into_iter().collect::<std::collections::BTreeSet<_>>();
        set(&name, json!({
            "containers": unique(sidecars).iter().map(one).collect::<Vec<_>>(),
            "initContainers": unique(inits).iter().map(one).collect::<Vec<_>>(),
            "volumes": [{"name": "v", "emptyDir": {}, "newer": true}],
            "imagePullSecrets": [{"name": name}],
            "patchPodMetadata": [{"annotations": {format!("k-{name}"): r#"{"a":1}"#}, "patchPolicy": "MergePatchJson"}],
            "selector": {"matchLabels": {"app": if matches { "web" } else { "x" }}},
        }))
    }
}

prop_compose! {
    fn any_pod()(
        containers in prop::collection::btree_set("[l-p]", 1..5), mounts in any::<bool>(), list in any::<bool>(),
    ) -> Value {
        let mut own: Vec<Value> = vec![json!({"name": "main", "env": [{"name": "A", "value": "1"}], "newer": [1]})];
        own.extend(containers.iter().rev().map(|name| json!({"name": name, "newer": name})));
        if mounts {
            own[0]["volumeMounts"] = json!([{"name": "w", "mountPath": "/w", "newer": 1}]);
        }
        let mut pod = pod();
        pod["spec"] = json!({"containers": own, "newer": {"deep": [{"name": "n"}]}});
        if list {
            pod["spec"]["volumes"] = json!([{"name": "w"}, {"name": "z", "newer": null}]);
        }
        pod
    }
}

/// Is `part` in `whole`, in its order?
fn is_subsequence(part: &Value, whole: &Value) -> bool {
    let mut whole = whole.as_array().unwrap().iter();
    part.as_array()
        .unwrap()
        .iter()
        .all(|one| whole.any(|other| other == one))
}

proptest! {
    #[test]
    fn injecting_keeps_what_the_pod_has_and_doing_it_again_changes_nothing(
        pod in any_pod(), sets in prop::collection::vec(any_set(), 0..4),
    ) {
        let mut sets = sets;
        let mut seen = std::collections::BTreeSet::new();
        sets.retain(|set| seen.insert(set["metadata"]["name"].to_string()));
        let found = inject(&pod, &sets);
        prop_assert!(is_subsequence(&pod["spec"]["containers"], &found["spec"]["containers"]));
        prop_assert_eq!(&found["spec"]["newer"], &pod["spec"]["newer"]);
        if !pod["spec"]["volumes"].is_null() {
            prop_assert!(is_subsequence(&pod["spec"]["volumes"], &found["spec"]["volumes"]));
        }
        for container in found["spec"]["containers"].as_array().unwrap() {
            let paths: Vec<_> = container["volumeMounts"].as_array().into_iter().flatten()
                .map(|mount| mount["mountPath"].to_string()).collect();
            let unique: std::collections::BTreeSet<_> = paths.iter().collect();
            prop_assert_eq!(unique.len(), paths.len());
        }
        let of: Vec<SetDecision> = decisions(&request(&pod, "u"), &known(&sets)).unwrap();
        prop_assert_eq!(of.len(), sets.len());
        // two sets that inject containers of one name make a pod that no server takes
        let mut all = std::collections::BTreeSet::new();
        let names = names(&found["spec"]["containers"]);
        prop_assume!(names.iter().all(|name| all.insert(*name)));
        let inits: Vec<&Value> = found["spec"]["initContainers"].as_array().into_iter().flatten().collect();
        prop_assume!(inits.iter().all(|one| all.insert(one["name"].as_str().unwrap())));
        prop_assert_eq!(inject(&found, &sets), found);
    }
}
