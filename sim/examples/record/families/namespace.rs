//! Namespaces that end, while no controller empties them.

use serde_json::{Value, json};

use super::{Dice, Step, delete, get, object, patch, post, put, sample};

const NAMESPACE: &str = "/api/v1/namespaces/$ns";

pub(super) fn steps(dice: &mut Dice) -> Vec<Step> {
    let sample = sample(dice);
    let mut steps = vec![post(sample.path, object(sample, "a", &json!({})))];
    if dice.roll(2) == 0 {
        steps.push(patch(
            "merge",
            NAMESPACE,
            json!({"metadata": {"finalizers": ["example.com/hold"]}}),
        ));
    }
    steps.push(match dice.roll(4) {
        0 => delete(NAMESPACE, json!({"propagationPolicy": "Foreground"})),
        1 => delete(
            NAMESPACE,
            json!({"preconditions": {"uid": "11111111-1111-4111-8111-111111111111"}}),
        ),
        _ => delete(NAMESPACE, Value::Null),
    });
    for _ in 0..5 {
        steps.push(match dice.roll(12) {
            0 => post(sample.path, object(sample, "late", &json!({}))),
            1 => patch(
                "merge",
                &format!("{}/a", sample.path),
                json!({"metadata": {"labels": {"l": "1"}}}),
            ),
            2 => delete(&format!("{}/a", sample.path), Value::Null),
            3 => delete(NAMESPACE, Value::Null),
            4 => get(NAMESPACE),
            5 => patch("merge", NAMESPACE, json!({"metadata": {"labels": {"l": "1"}}})),
            6 => put(
                &format!("{NAMESPACE}/finalize"),
                json!({"metadata": {"name": "$ns"}, "spec": {"finalizers": []}}),
            ),
            7 => patch("merge", NAMESPACE, json!({"metadata": {"finalizers": null}})),
            8 => post("/api/v1/namespaces", json!({"metadata": {"name": "$ns"}})),
            9 => patch(
                "merge",
                &format!("{NAMESPACE}/status"),
                json!({"status": {"phase": "Active"}}),
            ),
            10 => put(
                &format!("{NAMESPACE}/finalize"),
                json!({"metadata": {"name": "other"}, "spec": {"finalizers": []}}),
            ),
            _ => get(&format!("{}/a", sample.path)),
        });
    }
    steps
}
