//! Hashes, revisions and records of SidecarSets: published vectors, and objects that three versions stored.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::{collections::BTreeMap, fs, path::PathBuf};

use go_compat::revision::{revision_hash, revision_name};
use kruise_plan_kit::sidecars::{
    Matcher, Records, Working, add_to_list, canary_of, custom_version, hashes, hashes_of, is_in_list,
    is_structurally_consistent, names, restore, revision_data, sidecar_list,
};
use serde_json::{Value, json};

fn fixture(version: &str, name: &str) -> Vec<Value> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/upstream");
    let text = fs::read_to_string(root.join(version).join(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Every stored form of the set: at rest and in the middle of an upgrade, in each version served.
fn stored_sets() -> Vec<(&'static str, Value)> {
    let files = [
        "rest-sidecarsets.json",
        "mid-sidecarsets.json",
        "mid-sidecarsets.v1alpha1.apps.kruise.io.json",
    ];
    let versions = ["1.8.4", "1.9.0", "main"];
    let all = versions.into_iter().flat_map(|version| {
        let sets = files.into_iter().flat_map(move |file| fixture(version, file));
        sets.map(move |set| (version, set))
    });
    all.collect()
}

fn defaulted(own: Value) -> Value {
    let mut container = json!({
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent", "podInjectPolicy": "BeforeAppContainer", "resources": {},
        "upgradeStrategy": {"upgradeType": "ColdUpgrade"}, "shareVolumePolicy": {"type": "disabled"},
    });
    container
        .as_object_mut()
        .unwrap()
        .extend(own.as_object().unwrap().clone());
    container
}

#[test]
fn the_hash_of_a_plain_container_is_the_published_one() {
    let found =
        hashes(&json!({"containers": [defaulted(json!({"name": "logger", "image": "busybox:1.36"}))]}));
    assert_eq!(
        found.full,
        "v74454b9v25ccc9v27z654fzz4czxf8w67b2b4dc8458c4f54d649f7v4c6v69ff"
    );
    assert_eq!(
        found.without_image,
        "54wdczcvf9fwd2bcvz4xw79dc4wzvb882244vbb4w2b6wwxv8b9zddf2752f7x99"
    );
}

#[test]
fn the_hash_covers_computed_resources() {
    let found = hashes(&json!({"containers": [defaulted(json!({
        "name": "p",
        "image": "p@sha256:a9286defaba7b3a519d585ba0e37d0b2cbee74ebfe590960b0b1d6a5e97d1e1d",
        "resourcesPolicy": {
            "targetContainersMode": "sum", "targetContainersNameRegex": ".*",
            "resourcesExpr": {"limits": {"cpu": "max(cpu*50%, 50m)"}},
        },
    }))]}));
    assert_eq!(
        found.full,
        "9c2w464576v24f98786v5xfc764df8826442729vzccb5d752429494c78bvwd9w"
    );
    assert_eq!(
        found.without_image,
        "vzv4cv4dcdx9249c8xcv26vcw49d96z622dw8c44d4vw29dz64fx9f94b25vc2wd"
    );
}

#[test]
fn the_hash_covers_all_init_containers_if_one_keeps_running() {
    let mesh = defaulted(json!({
        "name": "mesh", "image": "mesh:v1", "command": ["sh", "-c", "a && b < c > d"],
        "podInjectPolicy": "AfterAppContainer",
        "upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "mesh:empty"},
        "shareVolumePolicy": {"type": "enabled"}, "shareVolumeDevicePolicy": {"type": "enabled"},
        "transferEnv": [{
            "sourceContainerNameFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.labels['c']"}},
            "envNames": ["B", "A"],
        }],
        "resources": {"limits": {"cpu": "0.5", "memory": "1024Mi"}},
        "env": [{"name": "POD", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}],
        "ports": [{"containerPort": 80, "protocol": "TCP"}],
        "readinessProbe": {
            "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"},
            "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3,
        },
        "startupProbe": {"httpGet": {"port": 80}},
    }));
    let after = json!({"podInjectPolicy": "AfterAppContainer"});
    let init = |own: Value| {
        let mut one = defaulted(after.clone());
        one.as_object_mut()
            .unwrap()
            .extend(own.as_object().unwrap().clone());
        one
    };
    let spec = json!({"containers": [mesh], "initContainers": [
        init(json!({"name": "warm", "image": "busybox", "imagePullPolicy": "Always"})),
        init(json!({"name": "proxy", "image": "envoy:v1", "restartPolicy": "Always"})),
    ]});
    let found = hashes(&spec);
    assert_eq!(
        found.full,
        "bd6bwbw747f9b6246zfv8vbd4cxfx44c5z4667792d99fd989d2wz6bzbxv6f2fv"
    );
    assert_eq!(
        found.without_image,
        "6zxcbwd7dc9f52z75dz44cdzxb444f9c5d75z44db8fbx75bczb4f4xfb4fzd6w7"
    );
    assert_eq!(sidecar_list(&spec), ["mesh", "proxy"]);
}

#[test]
fn the_revision_of_a_plain_container_has_the_published_name() {
    let data = revision_data(
        &json!({"containers": [defaulted(json!({"name": "logger", "image": "busybox:1.36"}))], "volumes": []}),
    );
    assert_eq!(
        data,
        r#"{"spec":{"$patch":"replace","containers":[{"image":"busybox:1.36","imagePullPolicy":"IfNotPresent","name":"logger","podInjectPolicy":"BeforeAppContainer","resources":{},"shareVolumePolicy":{"type":"disabled"},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","upgradeStrategy":{"upgradeType":"ColdUpgrade"}}],"imagePullSecrets":null,"initContainers":null,"patchPodMetadata":null,"volumes":null}}"#
    );
    let hash = revision_hash(data.as_bytes(), Some(0));
    assert_eq!(revision_name("log-agent", &hash), "log-agent-5bd8f95bd");
}

#[test]
fn stored_sets_have_the_hashes_and_revisions_they_were_given() {
    for (version, set) in stored_sets() {
        let computed = hashes(&set["spec"]);
        assert_eq!(
            set["metadata"]["annotations"][names::HASH],
            *computed.full,
            "{version}"
        );
        assert_eq!(
            set["metadata"]["annotations"][names::HASH_WITHOUT_IMAGE],
            *computed.without_image
        );
        assert_eq!(hashes_of(&set), computed);
        let name = set["metadata"]["name"].as_str().unwrap();
        let hash = revision_hash(revision_data(&set["spec"]).as_bytes(), Some(0));
        assert_eq!(set["status"]["latestRevision"], *revision_name(name, &hash));
        let mut bare = set.clone();
        bare["metadata"]["annotations"] = json!({});
        assert_eq!(hashes_of(&bare), computed);
    }
}

#[test]
fn a_stored_revision_gives_back_the_specification_it_was_made_of() {
    for version in ["1.8.4", "1.9.0", "main"] {
        let set = &fixture(version, "rest-sidecarsets.json")[0];
        let today = &fixture(version, "mid-sidecarsets.json")[0];
        let revisions = fixture(version, "mid-controllerrevisions.json");
        let found = revisions
            .iter()
            .find(|one| one["metadata"]["name"] == set["status"]["latestRevision"]);
        let restored = restore(&today["spec"], &found.unwrap()["data"]).unwrap();
        assert_eq!(restored, set["spec"]);
        assert_eq!(hashes_of(found.unwrap()), hashes(&restored));
    }
    assert_eq!(
        restore(&json!({}), &json!({"spec": {"template": 1}})),
        Some(json!({}))
    );
    assert_eq!(restore(&json!({}), &json!([])), None);
}

#[test]
fn records_on_stored_pods_are_written_back_byte_by_byte() {
    let mut seen = 0;
    for version in ["1.8.4", "1.9.0", "main"] {
        for file in ["rest-pods.json", "mid-pods.json"] {
            let set = &fixture(version, &file.replace("pods", "sidecarsets"))[0];
            for pod in fixture(version, file) {
                let annotations = &pod["metadata"]["annotations"];
                let Some(text) = annotations[names::HASH].as_str() else {
                    continue;
                };
                seen += 1;
                let records = Records::read(text).unwrap();
                assert_eq!(records.write(), text);
                assert_eq!(records.0["logs"].sidecar_list, sidecar_list(&set["spec"]));
                let without = annotations[names::HASH_WITHOUT_IMAGE].as_str().unwrap();
                assert_eq!(Records::read(without).unwrap().write(), without);
                assert_eq!(
                    Records::read(without).unwrap().hash_of("logs"),
                    hashes_of(set).without_image
                );
                assert!(is_in_list(
                    annotations[names::INJECTED_LIST].as_str().unwrap(),
                    "logs"
                ));
            }
        }
    }
    assert_eq!(seen, 12);
}

#[test]
fn records_of_before_and_of_later_are_read() {
    let old = Records::read(r#"{"b":"h2","a":"h1"}"#).unwrap();
    assert_eq!(
        (old.hash_of("a"), old.hash_of("b"), old.hash_of("c")),
        ("h1", "h2", "")
    );
    let later =
        r#"{"a":{"updateTimestamp":null,"hash":"h","sidecarSetName":"a","sidecarList":[],"newer":{"k":1}}}"#;
    assert_eq!(Records::read(later).unwrap().write(), later);
    assert_eq!(Records::read("").unwrap(), Records::default());
    let empty = r#"{"a":{"updateTimestamp":null,"hash":"h","sidecarSetName":"a","sidecarList":null}}"#;
    assert!(Records::read(empty).unwrap().0["a"].sidecar_list.is_empty());
    for bad in ["x", "[]", r#"{"a":1}"#] {
        assert!(Records::read(bad).is_err(), "{bad}");
    }
}

fn matches(set: &Value, pod: &[(&str, &str)], namespace: &[(&str, &str)]) -> bool {
    let (pod, namespace): (BTreeMap<_, _>, BTreeMap<_, _>) =
        (pod.iter().copied().collect(), namespace.iter().copied().collect());
    let matcher = Matcher::of(set);
    matcher.matches_pod(|key| pod.get(key).copied())
        && matcher.matches_namespace(|key| namespace.get(key).copied())
}

#[test]
fn a_set_matches_by_labels_of_pod_and_namespace() {
    let plain = json!({"spec": {"selector": {"matchLabels": {"a": "1"}}}});
    assert!(matches(&plain, &[("a", "1")], &[]));
    assert!(!matches(&plain, &[("a", "2")], &[]));
    for nothing in [
        json!({}),
        json!({"selector": {}}),
        json!({"selector": 1}),
        json!({"selector": null}),
    ] {
        assert!(!matches(&json!({"spec": nothing}), &[("a", "1")], &[]));
    }
    let scoped = json!({"spec": {
        "selector": {"matchLabels": {"a": "1"}},
        "namespaceSelector": {"matchExpressions": [{"key": "env", "operator": "In", "values": ["prod"]}]},
    }});
    assert!(matches(&scoped, &[("a", "1")], &[("env", "prod")]));
    assert!(!matches(&scoped, &[("a", "1")], &[]));
    let broken = json!({"spec": {"selector": {"matchLabels": {"a": "1"}}, "namespaceSelector": 7}});
    assert!(!matches(&broken, &[("a", "1")], &[("env", "prod")]));
}

#[test]
fn the_namespace_of_the_older_version_wins_over_its_selector() {
    let set = json!({"spec": {
        "selector": {"matchLabels": {"a": "1"}}, "namespace": "n1",
        "namespaceSelector": {"matchLabels": {"env": "prod"}},
    }});
    assert!(matches(
        &set,
        &[("a", "1")],
        &[("kubernetes.io/metadata.name", "n1")]
    ));
    assert!(!matches(
        &set,
        &[("a", "1")],
        &[("kubernetes.io/metadata.name", "n2"), ("env", "prod")]
    ));
}

#[test]
fn canaries_and_custom_versions_are_known_in_both_versions() {
    let annotated = |canary: &str, base: &str| {
        json!({"metadata": {"annotations": {
            "apps.kruise.io/sidecarset-canary": canary, "apps.kruise.io/sidecarset-base": base,
        }}})
    };
    assert_eq!(canary_of(&annotated("true", "b")), Some("b"));
    assert_eq!(canary_of(&annotated("yes", "b")), None);
    assert_eq!(canary_of(&annotated("true", "")), None);
    assert_eq!(custom_version(&json!({"spec": {"customVersion": "v1"}})), "v1");
    let label = json!({"metadata": {"labels": {"apps.kruise.io/sidecarset-custom-version": "v2"}}});
    assert_eq!(custom_version(&label), "v2");
    assert_eq!(custom_version(&json!({})), "");
}

#[test]
fn a_pod_is_consistent_with_a_set_when_it_has_all_its_containers() {
    let spec = json!({"containers": [
        {"name": "cold"}, {"name": "hot", "upgradeStrategy": {"upgradeType": "HotUpgrade"}},
    ]});
    let (working, unknown) = (Working::read(r#"{"hot":"hot-1"}"#), Working::default());
    let check =
        |has: &[&str], working| is_structurally_consistent(&spec, |name| has.contains(&name), working);
    assert!(check(&["cold", "hot-1", "hot-2"], &working));
    assert!(!check(&["cold", "hot-1", "hot-2"], &unknown));
    assert!(!check(&["cold", "hot-1"], &working));
    assert!(!check(&["hot-1", "hot-2"], &working));
    assert_eq!(working.of("hot"), ["hot-1", "hot-2"]);
    assert_eq!(working.of("other"), ["other-2", "other-1"]);
    assert_eq!(working.write(), r#"{"hot":"hot-1"}"#);
}

#[test]
fn the_list_of_injected_sets_is_sorted_and_has_each_once() {
    assert_eq!(add_to_list("", ["b", "a"]), "a,b");
    assert_eq!(add_to_list("z,b", ["b", "c"]), "b,c,z");
    assert!(is_in_list("a,b", "b") && !is_in_list("a,bc", "b"));
}
