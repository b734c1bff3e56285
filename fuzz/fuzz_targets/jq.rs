//! Filters in jq: they compile or say why not, and a filter has the same results again. The first line is the
//! filter, the rest the object.

#![no_main]

use kruise_sim::fuzzing::Filter;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

/// What may run for ever, or make a result of any size: such filters are only compiled. Whoever writes stages for a
/// playground waits for their own.
const UNBOUNDED: &[&str] = &[
    "def",
    "range",
    "repeat",
    "recurse",
    "while",
    "until",
    "..",
    "limit",
    "reduce",
    "foreach",
    "*",
    "ltrimstr",
    "implode",
    "combinations",
    "walk",
    "paths",
    "splits",
    "gsub",
    "label",
    "inputs",
    "add",
    "|=",
    "[[",
    ",",
];

fuzz_target!(|data: &[u8]| {
    let Ok(data) = std::str::from_utf8(data) else {
        return;
    };
    let (text, object) = data.split_once('\n').unwrap_or((data, ""));
    let filter = match Filter::parse(text) {
        Ok(filter) => filter,
        Err(why) => return assert!(!why.is_empty()),
    };
    if UNBOUNDED.iter().any(|word| text.contains(word)) {
        return;
    }
    let object: Value = serde_json::from_str(object).unwrap_or_else(|_| {
        json!({"metadata": {"name": "web"}, "spec": {"containers": [{"image": "a:1"}, {"image": "b"}], "n": -1.5}})
    });
    let results = filter.run(&object);
    assert!(results.iter().all(|result| result != "null"), "{text}");
    assert_eq!(filter.run(&object), results, "{text}");
});
