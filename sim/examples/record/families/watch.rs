//! Watches: where they begin, what their selectors show, how they end.

use serde_json::{Value, json};

use super::{Dice, Step, delete, get, labelled, named, patch, post};

const PLURALS: &[&str] = &[
    "configmaps",
    "pods",
    "deployments",
    "things",
    "services",
    "secrets",
];

/// Parameters of watches; `timeoutSeconds` is added. `$rv(n)` is an early answer's version.
const QUERIES: &[&str] = &[
    "resourceVersion=$rv(1)",
    "resourceVersion=$rv(2)",
    "resourceVersion=0",
    "",
    "resourceVersion=$rv(1)&labelSelector=tier%3Dfront",
    "resourceVersion=$rv(1)&labelSelector=tier%21%3Dfront",
    "labelSelector=tier%20in%20(front,back)",
    "resourceVersion=$rv(1)&fieldSelector=metadata.name%3Da",
    "resourceVersion=$rv(1)&fieldSelector=metadata.name%21%3Da",
    "resourceVersion=1",
    "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
    "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=tier%3Dfront",
    "sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
    "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=$rv(2)",
    "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=$rv(1)",
];

/// Watches that are refused.
const REFUSED: &[&str] = &[
    "resourceVersion=abc",
    "resourceVersion=-1",
    "labelSelector=a%20in%20b",
    "fieldSelector=spec.nothing%3Dx",
    "resourceVersionMatch=Exact",
    "resourceVersionMatch=NotOlderThan&resourceVersion=1",
    "sendInitialEvents=true",
    "sendInitialEvents=true&resourceVersionMatch=Exact",
    "sendInitialEvents=true&resourceVersionMatch=Never",
    "resourceVersionMatch=NotOlderThan&sendInitialEvents=true&continue=x",
];

const FORMS: &[&str] = &[
    "application/json",
    "application/json",
    "application/json",
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    "application/json;as=Table;g=meta.k8s.io;v=v1",
    "application/json;as=Table;g=meta.k8s.io;v=v1,application/json",
];

pub(super) fn steps(dice: &mut Dice) -> Vec<Step> {
    let sample = named(dice.word(PLURALS));
    let path = sample.path;
    let one = |name: &str| format!("{path}/{name}");
    let mut steps = vec![
        post(path, labelled(sample, "a", "front")),
        post(path, labelled(sample, "b", "back")),
    ];
    for _ in 0..4 + dice.roll(3) {
        let name = dice.word(&["a", "a", "b", "c"]);
        steps.push(match dice.roll(8) {
            0 => delete(&one(name), Value::Null),
            1 => post(path, labelled(sample, name, "front")),
            2 => patch(
                "json",
                &one(name),
                json!([{"op": "remove", "path": "/metadata/labels/tier"}]),
            ),
            3 => patch(
                "merge",
                &one(name),
                json!({"metadata": {"labels": {"tier": null}}}),
            ),
            4 => patch(
                "merge",
                &one(name),
                json!({"metadata": {"finalizers": ["example.com/hold"]}}),
            ),
            5 => patch("merge", &one(name), json!({"metadata": {"finalizers": null}})),
            6 => patch(
                "merge",
                &one(name),
                json!({"metadata": {"resourceVersion": "$rv(1)", "labels": {"n": "1"}}}),
            ),
            _ => patch(
                "merge",
                &one(name),
                json!({"metadata": {"labels": {"tier": dice.word(&["front", "back", "mid"])}}}),
            ),
        });
    }
    for _ in 0..3 {
        steps.push(watch(dice, path));
    }
    for _ in 0..dice.roll(3) {
        steps.push(get(&format!(
            "{path}?watch=true&timeoutSeconds=1&{}",
            dice.word(REFUSED)
        )));
    }
    steps
}

fn watch(dice: &mut Dice, path: &str) -> Step {
    let mut query = format!("timeoutSeconds=1&{}", dice.word(QUERIES));
    if query.ends_with("resourceVersion=1") && !path.contains("example.com") {
        // how far back a built-in kind reaches is a matter of the server's age
        query.push_str("000000000");
    }
    let target = match dice.roll(8) {
        // the old form of watches, of a collection and of one object
        0 => format!("{}?{query}", path.replace("/namespaces/", "/watch/namespaces/")),
        1 if !path.contains("example.com") => {
            format!("{}/a?{query}", path.replace("/namespaces/", "/watch/namespaces/"))
        }
        _ => format!("{path}?watch=true&{query}"),
    };
    get(&target).accept(dice.word(FORMS))
}
