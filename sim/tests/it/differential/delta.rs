//! Where two answers differ, in as few words as possible.

use std::fmt::Write as _;

use serde_json::Value;

/// Longest value that is shown.
const SHOWN: usize = 300;

/// One line per place.
pub fn delta(real: &Value, sim: &Value) -> String {
    let mut out = String::new();
    walk("", Some(real), Some(sim), &mut out);
    out
}

fn walk(path: &str, real: Option<&Value>, sim: Option<&Value>, out: &mut String) {
    match (real, sim) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let more = b.keys().filter(|name| !a.contains_key(*name));
            for name in a.keys().chain(more) {
                walk(&format!("{path}.{name}"), a.get(name), b.get(name), out);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for index in 0..a.len().max(b.len()) {
                walk(&format!("{path}[{index}]"), a.get(index), b.get(index), out);
            }
        }
        (a, b) if a == b => {}
        (a, b) => writeln!(out, "    {path}: real {} sim {}", shown(a), shown(b)).unwrap(),
    }
}

fn shown(value: Option<&Value>) -> String {
    let text = value.map_or_else(|| "nothing".to_owned(), Value::to_string);
    if text.chars().count() <= SHOWN {
        return text;
    }
    text.chars().take(SHOWN).chain("...".chars()).collect()
}
