//! Applies rules, and keeps in an annotation what they would lose.

use serde_json::{Map, Value, json};

use super::{Direction, NEWER, OLDER, Rule, path};
use crate::names;

const PLACE: [&str; 3] = ["metadata", "annotations", names::CONVERSION_DATA];

const MAPS: [[&str; 2]; 2] = [["metadata", "labels"], ["metadata", "annotations"]];

/// Converts an object. Fields that the rules would lose are kept; fields that were kept are restored.
pub fn convert(object: &mut Value, rules: &[Rule], direction: Direction) {
    let kept = unstash(object, direction);
    let before = object.clone();
    apply(object, rules, direction);
    for entry in &kept {
        restore(object, entry);
    }
    let mut back = object.clone();
    apply(&mut back, rules, direction.back());
    let mut lost = Vec::new();
    let mut before = before;
    for side in [&mut before, &mut back] {
        // Labels and annotations come and go one by one, their maps with the first and last of them.
        for map in MAPS {
            if path::get(side, &map).is_none() {
                path::set(side, &map, json!({}));
            }
        }
    }
    differences(&before, &back, &mut Vec::new(), &mut lost);
    if !lost.is_empty() {
        let text = json!({version(direction.back()): lost}).to_string();
        path::set(object, &PLACE, text.into());
    }
}

fn version(direction: Direction) -> &'static str {
    match direction {
        Direction::Newer => NEWER,
        Direction::Older => OLDER,
    }
}

/// Applies rules and keeps nothing. Rules are undone in the opposite order.
pub fn apply(object: &mut Value, rules: &[Rule], direction: Direction) {
    match direction {
        Direction::Newer => rules.iter().for_each(|rule| rule.apply(object, direction)),
        Direction::Older => rules.iter().rev().for_each(|rule| rule.apply(object, direction)),
    }
}

/// Removes the annotation. Returns what was kept for the target version.
fn unstash(object: &mut Value, direction: Direction) -> Vec<Value> {
    let text = path::take(object, &PLACE);
    let text = text.as_ref().and_then(Value::as_str).unwrap_or_default();
    let mut data: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
    match data.remove(version(direction)) {
        Some(Value::Array(entries)) => entries,
        _ => Vec::new(),
    }
}

/// Lists are compared as a whole: an item has no name by which it is found after an edit.
fn differences(before: &Value, back: &Value, at: &mut Vec<String>, lost: &mut Vec<Value>) {
    let (Value::Object(had), Value::Object(has)) = (before, back) else {
        if before != back {
            lost.push(entry(at, Some(before), Some(back)));
        }
        return;
    };
    for (name, value) in had {
        at.push(name.clone());
        match has.get(name) {
            Some(other) => differences(value, other, at, lost),
            None => lost.push(entry(at, Some(value), None)),
        }
        at.pop();
    }
    for (name, value) in has.iter().filter(|(name, _)| !had.contains_key(*name)) {
        at.push(name.clone());
        lost.push(entry(at, None, Some(value)));
        at.pop();
    }
}

/// One kept field: its value, and the value that the rules would restore; absent values are left out.
fn entry(at: &[String], is: Option<&Value>, back: Option<&Value>) -> Value {
    let mut entry = json!({"at": at});
    for (name, value) in [("is", is), ("back", back)] {
        if let Some(value) = value {
            path::set(&mut entry, &[name], value.clone());
        }
    }
    entry
}

/// Restores a kept field, unless it was edited since.
fn restore(object: &mut Value, entry: &Value) {
    let Some(at) = entry.get("at").and_then(Value::as_array) else {
        return;
    };
    let at: Vec<&str> = at.iter().filter_map(Value::as_str).collect();
    let Some((_, parents)) = at.split_last() else {
        return;
    };
    let ours = matches!(
        at.as_slice(),
        ["spec" | "status", ..] | ["metadata", "labels" | "annotations", _]
    );
    if !ours || path::get(object, &at) != entry.get("back") {
        return;
    }
    let label = MAPS.iter().any(|map| parents == map);
    match entry.get("is") {
        Some(value) if label || path::get(object, parents).is_some_and(Value::is_object) => {
            path::set(object, &at, value.clone());
        }
        Some(_) => {}
        None => drop(path::take(object, &at)),
    }
}
