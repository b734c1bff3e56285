use serde_json::{Value, json};

use super::ConvertError;
use crate::kinds::{self, ALL};
use crate::names;
use crate::names::podunavailablebudget::{PROTECT_OPERATIONS, PROTECT_TOTAL_REPLICAS};

fn in_version(mut object: Value, version: &str) -> Value {
    kinds::convert(&ALL, &mut object, &format!("apps.kruise.io/{version}")).unwrap();
    object
}

fn sidecar_set(version: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("apps.kruise.io/{version}"), "kind": "SidecarSet",
           "metadata": {"name": "log"}, "spec": spec})
}

fn kept(object: &Value) -> &Value {
    &object["metadata"]["annotations"][names::CONVERSION_DATA]
}

#[test]
fn a_named_namespace_becomes_a_selector_and_comes_back() {
    let older = sidecar_set(
        "v1alpha1",
        json!({"namespace": "shop", "namespaceSelector": {"matchLabels": {"a": "b"}}}),
    );
    let newer = in_version(older.clone(), "v1beta1");
    assert_eq!(
        newer["spec"],
        json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}})
    );
    assert_eq!(in_version(newer, "v1alpha1"), older);
}

#[test]
fn an_edit_in_between_wins_over_kept_fields() {
    let older = sidecar_set("v1alpha1", json!({"namespace": "shop"}));
    let mut newer = in_version(older, "v1beta1");
    newer["spec"]["namespaceSelector"] = json!({"matchLabels": {"team": "x"}});
    let back = in_version(newer, "v1alpha1");
    assert_eq!(
        back["spec"]["namespaceSelector"],
        json!({"matchLabels": {"team": "x"}})
    );
}

#[test]
fn a_custom_version_is_a_label_in_the_older_version() {
    let newer = sidecar_set("v1beta1", json!({"customVersion": "v2"}));
    let older = in_version(newer.clone(), "v1alpha1");
    assert_eq!(
        older["metadata"],
        json!({"name": "log", "labels": {names::sidecarset::CUSTOM_VERSION: "v2"}})
    );
    assert_eq!(in_version(older, "v1beta1"), newer);
}

#[test]
fn nothing_is_kept_where_rules_lose_nothing() {
    let older = sidecar_set("v1alpha1", json!({"containers": [{"name": "a"}]}));
    assert_eq!(kept(&in_version(older, "v1beta1")), &Value::Null);
}

#[test]
fn the_mode_of_a_pull_secret_survives_a_client_of_the_older_version() {
    let newer = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage", "metadata": {"name": "n"},
        "spec": {"images": {"reg/x": {"tags": [], "pullSecrets": [{"namespace": "a", "name": "b", "mode": "batch"}]}}}});
    let mut older = in_version(newer.clone(), "v1alpha1");
    assert_eq!(
        older["spec"]["images"]["reg/x"]["pullSecrets"],
        json!([{"namespace": "a", "name": "b"}])
    );
    older["metadata"]["labels"] = json!({"zone": "1"});
    let back = in_version(older, "v1beta1");
    assert_eq!(back["spec"], newer["spec"]);
    assert_eq!(kept(&back), &Value::Null);
}

#[test]
fn kept_fields_never_change_metadata() {
    let forged = json!({"v1alpha1": [{"at": ["metadata", "uid"], "is": "forged"}, {"at": ["spec", "namespace"], "is": "x"},
        {"at": []}, {}, 7]});
    let mut newer = sidecar_set("v1beta1", json!({}));
    newer["metadata"]["annotations"] = json!({names::CONVERSION_DATA: forged.to_string()});
    let older = in_version(newer, "v1alpha1");
    assert_eq!(older["metadata"]["uid"], Value::Null);
    assert_eq!(older["spec"]["namespace"], "x");
}

#[test]
fn a_version_that_is_not_served_is_an_error_that_names_it() {
    let error = |version: &str, kind: &str, wanted: &str| {
        kinds::convert(&ALL, &mut json!({"apiVersion": version, "kind": kind}), wanted).unwrap_err()
    };
    let wanted = "apps.kruise.io/v1beta1";
    assert!(matches!(
        error("apps/v1", "Deployment", wanted),
        ConvertError::Kind { .. }
    ));
    assert_eq!(
        error("apps.kruise.io/v9", "SidecarSet", wanted).to_string(),
        "SidecarSet is not served in version apps.kruise.io/v9"
    );
    assert_eq!(
        error("apps.kruise.io/v1alpha1", "SidecarSet", "other/v1beta1").to_string(),
        "SidecarSet is not served in version other/v1beta1"
    );
}

fn object(kind: &str, version: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("apps.kruise.io/{version}"), "kind": kind, "metadata": {"name": "a"}, "spec": spec})
}

#[test]
fn surge_and_partitioned_scaling_of_a_daemon_set_convert() {
    let mut older = object(
        "DaemonSet",
        "v1alpha1",
        json!({"updateStrategy": {"rollingUpdate": {"rollingUpdateType": "Surging"}}}),
    );
    older["metadata"]["annotations"] = json!({names::daemonset::PROGRESSIVE_CREATE_POD: "true"});
    older["status"] = json!({"daemonSetHash": "h"});
    let newer = in_version(older.clone(), "v1beta1");
    assert_eq!(
        newer["spec"]["updateStrategy"]["rollingUpdate"]["rollingUpdateType"],
        "Standard"
    );
    assert_eq!(newer["spec"]["scaleStrategy"]["partitionedScaling"], true);
    assert_eq!(newer["status"], json!({"updateRevision": "h"}));
    assert_eq!(in_version(newer, "v1alpha1"), older);
}

#[test]
fn an_old_surge_without_limits_is_a_surge_of_one_and_one_with_limits_keeps_them() {
    let rolling = |limits: Value| {
        let mut rolling = json!({"rollingUpdateType": "Surging"});
        rolling
            .as_object_mut()
            .unwrap()
            .extend(limits.as_object().unwrap().clone());
        let older = object(
            "DaemonSet",
            "v1alpha1",
            json!({"updateStrategy": {"rollingUpdate": rolling}}),
        );
        let newer = in_version(older.clone(), "v1beta1");
        assert_eq!(in_version(newer.clone(), "v1alpha1"), older);
        newer["spec"]["updateStrategy"]["rollingUpdate"].clone()
    };
    let of_one = json!({"rollingUpdateType": "Standard", "maxSurge": 1, "maxUnavailable": 0});
    assert_eq!(rolling(json!({})), of_one);
    assert_eq!(rolling(json!({"maxSurge": null, "maxUnavailable": 0})), of_one);
    for limits in [json!({"maxSurge": "20%"}), json!({"maxUnavailable": 2})] {
        let mut kept = limits.clone();
        kept["rollingUpdateType"] = json!("Standard");
        assert_eq!(rolling(limits), kept);
    }
}

#[test]
fn partitioned_scaling_is_an_annotation_in_the_older_version_and_can_be_switched_off_there() {
    let annotation = names::daemonset::PROGRESSIVE_CREATE_POD;
    let newer = object(
        "DaemonSet",
        "v1beta1",
        json!({"scaleStrategy": {"partitionedScaling": true}}),
    );
    let mut older = in_version(newer.clone(), "v1alpha1");
    assert_eq!(older["metadata"]["annotations"][annotation], "true");
    assert_eq!(older["spec"], json!({}));
    assert_eq!(in_version(older.clone(), "v1beta1"), newer);
    older["metadata"]["annotations"]
        .as_object_mut()
        .unwrap()
        .remove(annotation);
    let back = in_version(older, "v1beta1");
    assert_ne!(
        back["spec"]["scaleStrategy"]["partitionedScaling"], true,
        "{back}"
    );
}

#[test]
fn partitioned_scaling_that_is_switched_off_stays_off_after_an_edit_of_the_older_version() {
    let annotation = names::daemonset::PROGRESSIVE_CREATE_POD;
    for strategy in [json!({"partitionedScaling": false}), json!({}), Value::Null] {
        let mut newer = object("DaemonSet", "v1beta1", json!({"scaleStrategy": strategy}));
        newer["metadata"]["annotations"] = json!({annotation: "true"});
        let mut older = in_version(newer, "v1alpha1");
        assert!(older["metadata"]["annotations"][annotation].is_null(), "{older}");
        older["spec"]["minReadySeconds"] = json!(5);
        // Some clients write what they know, and drop what conversions keep.
        let mut plain = older.clone();
        plain["metadata"] = json!({"name": "a"});
        for edited in [older, plain] {
            let back = in_version(edited, "v1beta1");
            assert_ne!(
                back["spec"]["scaleStrategy"]["partitionedScaling"], true,
                "{back}"
            );
            assert_eq!(back["spec"]["minReadySeconds"], 5);
        }
    }
}

#[test]
fn fields_of_the_newer_stateful_set_survive_an_edit_of_the_older() {
    let newer = object(
        "StatefulSet",
        "v1beta1",
        json!({"replicas": 1, "reserveOrdinals": [1, "3-5"], "lifecycle": {}, "ordinals": {"start": 2}}),
    );
    let mut older = in_version(newer.clone(), "v1alpha1");
    assert_eq!(older["spec"], json!({"replicas": 1}));
    older["spec"]["replicas"] = json!(2);
    let back = in_version(older, "v1beta1");
    assert_eq!(back["spec"]["reserveOrdinals"], json!([1, "3-5"]));
    assert_eq!(back["spec"]["ordinals"], json!({"start": 2}));
    assert_eq!(back["spec"]["replicas"], 2);
}

#[test]
fn a_united_deployment_keeps_the_shape_of_its_clone_set_template() {
    let strategy = json!({"type": "InPlaceOnly", "partition": 1});
    let older = object(
        "UnitedDeployment",
        "v1alpha1",
        json!({"template": {"cloneSetTemplate": {"spec": {"updateStrategy": strategy}}}}),
    );
    let newer = in_version(older.clone(), "v1beta1");
    assert_eq!(
        newer["spec"]["template"]["cloneSetTemplate"]["spec"]["updateStrategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": "InPlaceOnly", "partition": 1}})
    );
    assert_eq!(in_version(newer, "v1alpha1"), older);
}

#[test]
fn numbers_of_subsets_are_maps_in_the_older_version() {
    let mut newer = object("UnitedDeployment", "v1beta1", json!({}));
    newer["status"] = json!({"updatedRevision": "r2", "subsetStatuses": [
        {"name": "a", "replicas": 3, "partition": 1}, {"name": "b", "replicas": 2}]});
    let older = in_version(newer.clone(), "v1alpha1");
    assert_eq!(
        older["status"]["updateStatus"],
        json!({"updatedRevision": "r2", "currentPartitions": {"a": 1, "b": 0}})
    );
    assert_eq!(older["status"]["subsetReplicas"], json!({"a": 3, "b": 2}));
    assert_eq!(in_version(older, "v1beta1"), newer);
}

fn budget(version: &str, annotations: Value, spec: Value) -> Value {
    json!({"apiVersion": format!("policy.kruise.io/{version}"), "kind": "PodUnavailableBudget",
           "metadata": {"name": "a", "annotations": annotations}, "spec": spec})
}

#[test]
fn annotations_of_a_budget_become_fields() {
    let annotations = json!({PROTECT_OPERATIONS: " DELETE , EVICT", PROTECT_TOTAL_REPLICAS: "7"});
    let older = budget("v1alpha1", annotations, json!({"maxUnavailable": 1}));
    let mut newer = older.clone();
    kinds::convert(&ALL, &mut newer, "policy.kruise.io/v1beta1").unwrap();
    assert_eq!(
        newer["spec"],
        json!({"maxUnavailable": 1, "protectOperations": ["DELETE", "EVICT"], "protectTotalReplicas": 7})
    );
    let mut back = newer;
    kinds::convert(&ALL, &mut back, "policy.kruise.io/v1alpha1").unwrap();
    assert_eq!(back, older);
}

#[test]
fn a_budget_without_known_operations_converts() {
    let annotations = json!({PROTECT_OPERATIONS: "DELETE,FLY", PROTECT_TOTAL_REPLICAS: "many"});
    let mut budget = budget("v1alpha1", annotations, json!({"maxUnavailable": 1}));
    kinds::convert(&ALL, &mut budget, "policy.kruise.io/v1beta1").unwrap();
    assert_eq!(budget["spec"], json!({"maxUnavailable": 1}));
}

#[test]
fn annotations_of_a_recreate_request_become_status_fields() {
    let mut older = object("ContainerRecreateRequest", "v1alpha1", json!({}));
    older["metadata"]["annotations"] = json!({
        names::containerrecreaterequest::SYNC_CONTAINER_STATUSES: r#"[{"name":"a","ready":true,"restartCount":1}]"#,
        names::containerrecreaterequest::UNREADY_ACQUIRED: "2026-01-02T03:04:05Z"});
    older["status"] = json!({"phase": "Recreating"});
    let newer = in_version(older.clone(), "v1beta1");
    assert_eq!(newer["status"]["containerStatusSnapshot"][0]["restartCount"], 1);
    assert_eq!(
        newer["status"]["conditions"][0]["type"],
        names::conditions::PRE_RECREATE_GRACE
    );
    assert_eq!(
        newer["status"]["conditions"][0]["lastTransitionTime"],
        "2026-01-02T03:04:05Z"
    );
    assert_eq!(in_version(newer, "v1alpha1"), older);
}
