//! The parts of server-side apply; whole sequences are compared with a real server in the tests of `kruise-sim`.

use serde_json::{Value, json};

use super::{FieldSet, Shape, compare, faults, fields, merge, without};
use crate::table::Table;

fn deployment() -> Shape<'static> {
    let table = Table::builtin();
    Shape::typed(table, table.find("apps/v1.Deployment").unwrap())
}

fn container(name: &str, ports: &Value) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": name, "ports": ports}]}}}})
}

#[test]
fn lists_are_merged_by_keys_and_their_defaults_and_keep_their_order() {
    let live = container(
        "a",
        &json!([{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}]),
    );
    let applied = container(
        "a",
        &json!([{"containerPort": 53, "protocol": "UDP", "name": "dns"}, {"containerPort": 80, "name": "web"}]),
    );
    let merged = merge(deployment(), &live, &applied);
    let expected = json!([
        {"containerPort": 53, "protocol": "UDP", "name": "dns"}, {"containerPort": 80, "protocol": "TCP", "name": "web"},
    ]);
    assert_eq!(
        merged["spec"]["template"]["spec"]["containers"][0]["ports"],
        expected
    );
    let more = merge(deployment(), &live, &container("b", &json!([])));
    let names = more["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    assert_eq!(
        names
            .iter()
            .map(|one| one["name"].as_str().unwrap())
            .collect::<Vec<_>>(),
        ["a", "b"]
    );
}

#[test]
fn fields_are_spelled_as_in_managed_fields() {
    let object = json!({
        "metadata": {"labels": {"app": "web"}, "finalizers": ["a/b"]},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {"spec": {"containers": [
            {"name": "main", "args": ["x"], "env": [{"name": "A", "value": "1"}]}]}}},
    });
    let set = fields(deployment(), &object);
    let expected = json!({
        "f:metadata": {"f:labels": {"f:app": {}}, "f:finalizers": {"v:\"a/b\"": {}}},
        "f:spec": {"f:selector": {}, "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {
            ".": {}, "f:name": {}, "f:args": {}, "f:env": {"k:{\"name\":\"A\"}": {".": {}, "f:name": {}, "f:value": {}}}}}}}},
    });
    assert_eq!(set.write(), expected);
    assert_eq!(FieldSet::read(&expected), set);
    let left = without(
        deployment(),
        &object,
        &FieldSet::read(&json!({"f:spec": {}, "f:metadata": {"f:labels": {"f:app": {}}}})),
    );
    assert_eq!(left, json!({"metadata": {"labels": null, "finalizers": ["a/b"]}}));
    assert!(
        set.paths()
            .contains(&r#".spec.template.spec.containers[name="main"].env[name="A"].value"#.to_owned())
    );
}

#[test]
fn a_comparison_tells_what_was_added_changed_and_removed() {
    let old = json!({"spec": {"replicas": 1, "paused": true}});
    let new = json!({"spec": {"replicas": 2}, "metadata": {"labels": {"a": "b"}}});
    let found = compare(deployment(), Some(&old), Some(&new));
    assert_eq!(found.modified.write(), json!({"f:spec": {"f:replicas": {}}}));
    assert_eq!(found.removed.write(), json!({"f:spec": {"f:paused": {}}}));
    assert_eq!(
        found.added.write(),
        json!({"f:metadata": {".": {}, "f:labels": {".": {}, "f:a": {}}}})
    );
}

#[test]
fn a_custom_resource_is_merged_as_its_schema_says() {
    let text = json!({"type": "string"});
    let part = json!({"type": "object", "properties": {"name": text, "size": {"type": "integer"}}});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": part},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "box": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": text},
        "plain": {"type": "array", "items": text},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }}}});
    let shape = Shape::custom(&schema);
    let live = json!({"spec": {"parts": [{"name": "a", "size": 1}], "tags": ["x"], "box": {"a": "1"}, "plain": ["1"],
        "any": {"list": [1], "map": {"a": 1}}}});
    let applied = json!({"spec": {"parts": [{"name": "b"}], "tags": ["y", "x"], "box": {"b": "2"}, "plain": ["2"],
        "any": {"list": [2], "map": {"b": 2}}}});
    let expected = json!({"spec": {"parts": [{"name": "a", "size": 1}, {"name": "b"}], "tags": ["y", "x"], "box": {"b": "2"},
        "plain": ["2"], "any": {"list": [2], "map": {"a": 1, "b": 2}}}});
    assert_eq!(merge(shape, &live, &applied), expected);
    let wrong = json!({"spec": {"part": 1, "parts": [{"name": "a"}, {"name": "a"}, {}]}});
    let found = faults(shape, &wrong);
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(found[0], ".spec.part: field not declared in schema");
    assert_eq!(found[1], r#".spec.parts: duplicate entries for key [name="a"]"#);
}
