use serde_json::{Value, json};

use super::{ConvertError, convert};
use crate::names;

fn in_version(mut object: Value, version: &str) -> Value {
    convert(&mut object, &format!("apps.kruise.io/{version}")).unwrap();
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
fn an_edit_in_between_wins_over_what_was_kept() {
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
        json!({"name": "log", "labels": {names::SIDECARSET_CUSTOM_VERSION: "v2"}})
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
fn what_was_kept_never_reaches_beyond_the_specification() {
    let forged = json!({"v1alpha1": [{"at": ["metadata", "uid"], "is": "forged"}, {"at": ["spec", "namespace"], "is": "x"},
        {"at": []}, {}, 7]});
    let mut newer = sidecar_set("v1beta1", json!({}));
    newer["metadata"]["annotations"] = json!({names::CONVERSION_DATA: forged.to_string()});
    let older = in_version(newer, "v1alpha1");
    assert_eq!(older["metadata"]["uid"], Value::Null);
    assert_eq!(older["spec"]["namespace"], "x");
}

#[test]
fn what_is_not_served_is_refused_in_words() {
    let error = |version: &str, kind: &str, wanted: &str| {
        convert(&mut json!({"apiVersion": version, "kind": kind}), wanted).unwrap_err()
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
