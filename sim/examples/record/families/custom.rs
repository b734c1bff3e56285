//! Custom resources: what a definition may say, and what its schema does to objects.

use serde_json::{Value, json};

use super::{Dice, Step, delete, get, patch, post, put};
use crate::generate::merge;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const BOXES: &str = "/apis/$ns.example.com/v1/namespaces/$ns/boxes";

fn schema() -> Value {
    json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "size": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
            "ratio": {"type": "number", "exclusiveMinimum": true, "minimum": 0, "multipleOf": 0.5},
            "colour": {"type": "string", "enum": ["red", "green"], "default": "red"},
            "name": {"type": "string", "minLength": 2, "maxLength": 4},
            "open": {"type": "boolean", "default": false},
            "lid": {"type": "object", "nullable": true, "required": ["kind"], "properties": {
                "kind": {"type": "string", "default": "flat"}, "weight": {"type": "integer"}}},
            "tags": {"type": "array", "maxItems": 3, "minItems": 1, "items": {"type": "string"}},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string"}, "count": {"type": "integer", "default": 1}}}},
            "limits": {"type": "object", "maxProperties": 2, "additionalProperties": {"x-kubernetes-int-or-string": true}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "pod": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}}},
        "status": {"type": "object", "properties": {"full": {"type": "boolean"}, "count": {"type": "integer"}}}}})
}

fn definition(dice: &mut Dice) -> Value {
    let subresources = if dice.roll(2) == 0 {
        json!({"status": {}})
    } else {
        json!({})
    };
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boxes.$ns.example.com"},
        "spec": {"group": "$ns.example.com", "scope": "Namespaced", "names": {"plural": "boxes", "kind": "Box"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": subresources,
                "schema": {"openAPIV3Schema": schema()}}]}})
}

fn specs(dice: &mut Dice) -> Value {
    dice.pick(vec![
        json!({}),
        json!({"size": 5, "unknown": 1, "lid": {"weight": 2, "more": true}}),
        json!({"lid": null, "name": null, "size": null}),
        json!({"free": {"any": {"thing": [1, {"x": null}]}}}),
        json!({"parts": [{"name": "a"}, {"name": "b", "count": 2, "extra": 1}]}),
        json!({"limits": {"a": 1, "b": "50%"}}),
        json!({"ratio": 1.5, "tags": ["x"]}),
        json!({"ratio": 2}),
        json!({"pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"x": 1}}}),
        json!({"set": ["a", "b"]}),
    ])
}

fn bad_specs(dice: &mut Dice) -> Value {
    dice.pick(vec![
        json!({"size": 0}),
        json!({"size": 10}),
        json!({"size": "3"}),
        json!({"size": 1.5}),
        json!({"ratio": 0}),
        json!({"ratio": 0.7}),
        json!({"colour": "blue"}),
        json!({"name": "x"}),
        json!({"name": "xxxxx"}),
        json!({"open": "yes"}),
        json!({"lid": {"kind": 5}}),
        json!({"lid": []}),
        json!({"tags": []}),
        json!({"tags": ["a", "b", "c", "d"]}),
        json!({"tags": [1]}),
        json!({"set": ["a", "a"]}),
        json!({"parts": [{"name": "a"}, {"name": "a"}]}),
        json!({"parts": [{"count": 1}]}),
        json!({"limits": {"a": 1, "b": 2, "c": 3}}),
        json!({"limits": {"a": true}}),
        json!({"pod": {"spec": {}}}),
        json!("x"),
    ])
}

fn object(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "$ns.example.com/v1", "kind": "Box", "metadata": {"name": name}, "spec": spec})
}

pub(super) fn steps(dice: &mut Dice) -> Vec<Step> {
    if dice.roll(4) == 0 {
        return definitions(dice);
    }
    let one = format!("{BOXES}/a");
    let mut steps = vec![
        get(BOXES),
        post(DEFINITIONS, definition(dice)),
        Step::wait(BOXES, 200),
        post(BOXES, object("a", specs(dice))),
    ];
    for _ in 0..7 {
        steps.push(of_box(dice, &one));
    }
    if dice.roll(2) == 0 {
        steps.push(delete(
            &format!("{DEFINITIONS}/boxes.$ns.example.com"),
            Value::Null,
        ));
    }
    steps
}

fn of_box(dice: &mut Dice, one: &str) -> Step {
    match dice.roll(14) {
        0 => post(BOXES, object("b", specs(dice))),
        1 | 2 => post(BOXES, object("c", bad_specs(dice))),
        3 => patch("merge", one, json!({"spec": specs(dice)})),
        4 => patch("merge", one, json!({"spec": bad_specs(dice)})),
        5 => put(one, object("a", specs(dice))),
        6 => {
            let mut body = object("a", specs(dice));
            body["metadata"]["resourceVersion"] = "$rv(4)".into();
            put(one, body)
        }
        7 => patch(
            "json",
            one,
            json!([{"op": "add", "path": "/spec/size", "value": dice.roll(12)}]),
        ),
        8 => patch(
            "merge",
            &format!("{one}/status"),
            json!({"status": {"full": true, "odd": 1}, "spec": {"size": 7}}),
        ),
        9 => patch("merge", one, json!({"status": {"count": 4}})),
        10 => post(
            &format!("{BOXES}?fieldValidation=Strict"),
            object("s", specs(dice)),
        ),
        11 => get(BOXES),
        12 => patch("strategic-merge", one, json!({"spec": {}})),
        _ => get(one),
    }
}

/// Definitions that are refused, and one that is changed.
fn definitions(dice: &mut Dice) -> Vec<Step> {
    let one = format!("{DEFINITIONS}/boxes.$ns.example.com");
    let mut steps = Vec::new();
    for _ in 0..4 {
        let mut body = definition(dice);
        merge(&mut body, &bad_definition(dice));
        steps.push(post(DEFINITIONS, body));
    }
    steps.push(post(DEFINITIONS, definition(dice)));
    steps.push(Step::wait(BOXES, 200));
    steps.push(post(BOXES, object("a", specs(dice))));
    steps.push(patch("merge", &one, bad_definition(dice)));
    steps.push(get(BOXES));
    steps.push(delete(&one, Value::Null));
    steps
}

fn bad_definition(dice: &mut Dice) -> Value {
    dice.pick(vec![
        json!({"metadata": {"name": "other.$ns.example.com"}}),
        json!({"spec": {"group": "nodots"}}),
        json!({"spec": {"scope": "Everywhere"}}),
        json!({"spec": {"names": {"kind": "bad kind"}}}),
        json!({"spec": {"names": {"plural": "Boxes"}}}),
        json!({"spec": {"names": {"kind": ""}}}),
        json!({"spec": {"versions": []}}),
        json!({"spec": {"versions": [{"name": "v1", "served": true, "storage": false,
            "schema": {"openAPIV3Schema": {"type": "object"}}}]}}),
        json!({"spec": {"versions": [{"name": "v1", "served": true, "storage": true}]}}),
        json!({"spec": {"versions": [{"name": "V1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object"}}}]}}),
        json!({"spec": {"conversion": {"strategy": "Magic"}}}),
        json!({"spec": {"conversion": {"strategy": "Webhook"}}}),
        json!({"spec": {"preserveUnknownFields": true}}),
    ])
}
