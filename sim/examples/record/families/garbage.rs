//! Owners and dependents, finalizers and namespaces, with the controllers that act on them.

use serde_json::{Value, json};

use super::{Dice, Step, delete, get, patch, post};

const MAPS: &str = "/api/v1/namespaces/$ns/configmaps";
const SECRETS: &str = "/api/v1/namespaces/$ns/secrets";
const NAMESPACE: &str = "/api/v1/namespaces/$ns";

fn owned(name: &str, blocks: bool) -> Value {
    json!({"metadata": {"name": name, "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
        "uid": "$uid(1)", "blockOwnerDeletion": blocks}]}})
}

pub(super) fn steps(dice: &mut Dice) -> Vec<Step> {
    if dice.roll(4) == 0 {
        return namespace(dice);
    }
    let owner = format!("{MAPS}/owner");
    let (child, other) = (format!("{SECRETS}/child"), format!("{MAPS}/other"));
    let mut steps = vec![
        post(MAPS, json!({"metadata": {"name": "owner"}})),
        post(SECRETS, owned("child", dice.roll(2) == 0)),
        post(MAPS, owned("other", true)),
    ];
    let held = dice.roll(3) == 0;
    if held {
        steps.push(patch(
            "merge",
            &child,
            json!({"metadata": {"finalizers": ["example.com/hold"]}}),
        ));
    }
    steps.push(post(MAPS, json!({"metadata": {"name": "owner"}})));
    steps.push(Step::pause());
    let policy = dice.word(&["Background", "Foreground", "Orphan", ""]);
    steps.push(match policy {
        "" => delete(&owner, Value::Null),
        policy => delete(&owner, json!({"propagationPolicy": policy})),
    });
    if policy == "Orphan" {
        steps.push(Step::wait(&owner, 404));
        steps.push(get(&child));
        steps.push(get(&other));
    } else {
        steps.push(Step::wait(&other, 404));
        if held {
            steps.push(Step::pause());
            steps.push(get(&owner));
            steps.push(get(&child));
            steps.push(patch("merge", &child, json!({"metadata": {"finalizers": null}})));
        }
        steps.push(Step::wait(&child, 404));
        steps.push(Step::wait(&owner, 404));
    }
    steps.push(get(MAPS));
    steps
}

fn namespace(dice: &mut Dice) -> Vec<Step> {
    let held = dice.roll(2) == 0;
    let finalizers = if held {
        json!(["example.com/hold"])
    } else {
        json!([])
    };
    let mut steps = vec![
        post(MAPS, json!({"metadata": {"name": "a", "finalizers": finalizers}})),
        post(SECRETS, json!({"metadata": {"name": "b"}})),
        get(&format!("{MAPS}/absent")),
        delete(NAMESPACE, Value::Null),
        Step::wait(&format!("{SECRETS}/b"), 404),
    ];
    if held {
        steps.push(post(SECRETS, json!({"metadata": {"name": "late"}})));
        steps.push(get(&format!("{MAPS}/a")));
        steps.push(patch(
            "json",
            &format!("{MAPS}/a"),
            json!([{"op": "remove", "path": "/metadata/finalizers"}]),
        ));
    }
    steps.push(Step::wait(NAMESPACE, 404));
    steps.push(get(&format!("{MAPS}/a")));
    steps
}
