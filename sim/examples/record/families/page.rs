//! Lists in pages, deletions of many, and writes that are only tried.

use serde_json::{Value, json};

use super::{Dice, Step, delete, get, labelled, patch, post, put, sample};
use crate::generate::object;

pub(super) fn steps(dice: &mut Dice) -> Vec<Step> {
    let sample = sample(dice);
    let path = sample.path;
    let mut steps: Vec<Step> = ["a", "b", "c", "d"]
        .iter()
        .map(|name| {
            post(
                path,
                labelled(sample, name, if dice.roll(2) == 0 { "front" } else { "back" }),
            )
        })
        .collect();
    let first = steps.len() + 1;
    steps.push(get(&format!("{path}?limit={}", 1 + dice.roll(3))));
    for _ in 0..3 {
        steps.push(page(dice, path, first));
    }
    for _ in 0..2 {
        steps.push(tried(dice, sample));
    }
    steps.push(many(dice, path));
    steps.push(get(path));
    steps
}

fn page(dice: &mut Dice, path: &str, first: usize) -> Step {
    let query = match dice.roll(10) {
        0 => format!("limit=2&continue=$continue({first})&resourceVersion=$rv(1)"),
        1 => format!("limit=2&continue=$continue({first})&resourceVersionMatch=Exact"),
        2 => "limit=2&continue=abc".to_owned(),
        3 => format!("continue=$continue({first})"),
        4 => format!("limit=1&continue=$continue({first})&labelSelector=tier%3Dfront"),
        5 => "limit=2&resourceVersion=$rv(2)&resourceVersionMatch=Exact".to_owned(),
        6 => "limit=2&resourceVersion=$rv(2)&resourceVersionMatch=NotOlderThan".to_owned(),
        7 => "limit=-1".to_owned(),
        8 => "limit=x".to_owned(),
        _ => format!("limit=1&continue=$continue({first})"),
    };
    get(&format!("{path}?{query}"))
}

/// A write that leaves no trace.
fn tried(dice: &mut Dice, sample: &super::Sample) -> Step {
    let path = sample.path;
    let one = format!("{path}/a");
    match dice.roll(8) {
        0 => post(&format!("{path}?dryRun=All"), object(sample, "new", &json!({}))),
        1 => post(&format!("{path}?dryRun=All"), object(sample, "a", &json!({}))),
        2 => delete(&format!("{one}?dryRun=All"), Value::Null),
        3 => patch(
            "merge",
            &format!("{one}?dryRun=All"),
            json!({"metadata": {"labels": {"dry": "run"}}}),
        ),
        4 => put(
            &format!("{one}?dryRun=All"),
            object(sample, "a", &json!({"metadata": {"resourceVersion": "$rv(1)"}})),
        ),
        5 => patch("json", &format!("{one}?dryRun=None"), json!([])),
        6 => delete(&one, json!({"dryRun": ["All"], "propagationPolicy": "Orphan"})),
        _ => post(
            &format!("{path}?dryRun=All"),
            object(
                sample,
                "",
                &json!({"metadata": {"name": null, "generateName": "dry-"}}),
            ),
        ),
    }
}

fn many(dice: &mut Dice, path: &str) -> Step {
    match dice.roll(7) {
        0 => delete(&format!("{path}?labelSelector=tier%3Dfront"), Value::Null),
        1 => delete(&format!("{path}?fieldSelector=metadata.name%3Db"), Value::Null),
        2 => delete(&format!("{path}?dryRun=All"), Value::Null),
        3 => delete(path, json!({"preconditions": {"uid": "$uid(1)"}})),
        4 => delete(&format!("{path}?labelSelector=a%20in%20b"), Value::Null),
        5 => delete(path, json!({"propagationPolicy": "Sideways"})),
        _ => delete(path, Value::Null),
    }
}
