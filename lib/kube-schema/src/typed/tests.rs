use serde_json::{Value, json};

use super::decode;
use crate::table::Table;

fn read(of: &str, value: Value) -> Result<super::Decoded, super::DecodeError> {
    let table = Table::builtin();
    decode(table, table.find(of).unwrap(), value)
}

#[test]
fn empty_members_vanish_and_plain_structs_are_always_there() {
    let pod = json!({"kind": "Pod", "metadata": {"labels": {}, "name": "a"}, "spec": {"nodeName": "", "containers": [
        {"name": "c", "image": "i", "env": [], "resources": {"limits": {"cpu": "1000m"}}}]}});
    let decoded = read("core/v1.Pod", pod).unwrap();
    assert_eq!(
        decoded.value,
        json!({"kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [
            {"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}}]}, "status": {}})
    );
    assert_eq!(decoded.unknown, Vec::<String>::new());
    let again = read("core/v1.Pod", decoded.value.clone()).unwrap();
    assert_eq!(again, decoded);
}

#[test]
fn pointers_keep_zero_and_conditions_show_missing_times() {
    let spec = json!({"spec": {"replicas": 0, "minReadySeconds": 0, "selector": null}});
    let value = read("apps/v1.Deployment", spec).unwrap().value;
    assert_eq!(value["spec"]["replicas"], 0);
    assert!(value["spec"].get("minReadySeconds").is_none());
    assert_eq!(value["spec"]["selector"], Value::Null);
    let pod = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    let value = read("core/v1.Pod", pod).unwrap().value;
    assert_eq!(value["status"]["conditions"][0]["lastProbeTime"], Value::Null);
}

#[test]
fn members_without_a_field_are_dropped_and_named() {
    let pod = json!({"spec": {"containers": [{"name": "a", "imagePull": "x"}]}, "zzz": 1});
    let decoded = read("core/v1.Pod", pod).unwrap();
    assert_eq!(decoded.unknown, ["spec.containers[0].imagePull", "zzz"]);
}

#[test]
fn a_value_of_the_wrong_type_is_refused_in_the_words_of_go() {
    let refused = |of, value| read(of, value).unwrap_err().text;
    assert_eq!(
        refused("core/v1.Pod", json!({"spec": {"containers": "x"}})),
        "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type []v1.Container"
    );
    assert_eq!(
        refused("apps/v1.Deployment", json!({"spec": {"replicas": "1"}})),
        "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"
    );
    assert_eq!(
        refused("core/v1.Pod", json!([])),
        "json: cannot unmarshal array into Go value of type v1.Pod"
    );
}
