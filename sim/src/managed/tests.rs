//! What the field manager of kube-apiserver 1.34 made of sequences of applies and updates
//! (`lib/kube-schema/gen/apply` prints them) is what is made of them here.

use kube_schema::apply::{FieldSet, Shape};
use kube_schema::table::Table;
use serde_json::{Value, json};

use super::apply::{By, conflict, decide};
use super::entries::{Managed, Owner};
use super::{Write, is_reset, owners};
use crate::object::{get_metadata, metadata_text, set_metadata};
use crate::validation::text;

const GOLDEN: &str = include_str!("golden.jsonl");

fn shape(sequence: &Value) -> Shape<'_> {
    if let Some(schema) = sequence.get("schema") {
        return Shape::custom(schema);
    }
    let table = Table::builtin();
    let (version, kind) = (text(sequence, "apiVersion"), text(sequence, "kind"));
    let package = if version == "v1" { "core/v1" } else { version };
    Shape::typed(table, table.find(&format!("{package}.{kind}")).unwrap())
}

/// What an update leaves, as [`super::noted`] decides it for a request.
fn updated(write: &Write<'_>, live: &Value, step: &Value, version: &str) -> Value {
    let mut new = live.clone();
    kube_schema::patch::merge(&mut new, step["update"].clone());
    let given = get_metadata(&new, "managedFields").clone();
    let known = Managed::read(get_metadata(live, "managedFields")).unwrap_or_default();
    let is_new = metadata_text(live, "uid").is_empty();
    let mut managed = if is_reset(&given) {
        Managed::default()
    } else {
        known
    };
    if is_new || !managed.0.is_empty() {
        let endpoint = text(step, "subresource").to_owned();
        let owner = Owner::updates(text(step, "manager"), version, endpoint);
        owners::update(write, (live, &new), &mut managed, owner);
    }
    set_metadata(&mut new, "managedFields", managed.write());
    new
}

/// The object without times, its entries in the order of their owners.
fn untimed(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(entries) = object
        .pointer_mut("/metadata/managedFields")
        .and_then(Value::as_array_mut)
    {
        for entry in entries.iter_mut() {
            entry.as_object_mut().unwrap().remove("time");
        }
        entries.sort_by_key(|entry| {
            ["operation", "manager", "apiVersion", "subresource"].map(|name| text(entry, name).to_owned())
        });
    }
    object
}

fn causes(step: &Value) -> Vec<&str> {
    step["conflicts"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// Plays a sequence; returns how many steps were in conflict.
fn play(number: usize, sequence: &Value) -> usize {
    let version = text(sequence, "apiVersion");
    let nothing = json!({"apiVersion": version, "kind": sequence["kind"]});
    let mut live = nothing.clone();
    let mut refused = 0;
    for (index, step) in sequence["steps"].as_array().unwrap().iter().enumerate() {
        let place = format!("sequence {number} step {index}: {step}");
        let write = Write {
            shape: shape(sequence),
            reset: FieldSet::default(),
            // the oldest entries are merged first
            now: format!("2026-01-01T00:00:{index:02}Z"),
        };
        let result = match step.get("apply") {
            None => Ok(updated(&write, &live, step, version)),
            Some(applied) => {
                let by = By {
                    manager: text(step, "manager"),
                    version,
                    endpoint: "",
                    force: step["force"] == true,
                };
                let there = (!metadata_text(&live, "uid").is_empty()).then_some(&live);
                decide(&write, there, &nothing, applied, &by)
            }
        };
        match result {
            Ok(mut new) => {
                if metadata_text(&live, "uid").is_empty() {
                    set_metadata(&mut new, "uid", "u".into());
                }
                assert_eq!(causes(step), [""; 0], "{place}");
                assert_eq!(untimed(&new), untimed(&step["live"]), "{place}");
                live = new;
            }
            Err(conflicts) => {
                refused += 1;
                let failure = conflict(&conflicts);
                let status = failure.status();
                let found = status["details"]["causes"].as_array().unwrap().iter();
                let shown = |cause: &Value| format!("{}: {}", text(cause, "message"), text(cause, "field"));
                let mut found: Vec<String> = found.map(shown).collect();
                found.sort();
                assert_eq!(found, causes(step), "{place}");
                if let Some(message) = step.get("message") {
                    assert_eq!(&status["message"], message);
                }
            }
        }
    }
    refused
}

#[test]
fn sequences_of_applies_and_updates_end_as_on_a_real_server() {
    let sequences = GOLDEN
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let refused: usize = sequences
        .enumerate()
        .map(|(number, sequence)| play(number, &sequence))
        .sum();
    assert!(refused > 20, "{refused}");
}
