//! What the schema does not take of what is to be applied.

use serde_json::Value;

use super::item;
use super::shape::{Atom, Shape, Wanted};

/// What the schema does not know of an object, or cannot tell apart in it: a line each.
pub fn faults(shape: Shape<'_>, value: &Value) -> Vec<String> {
    let mut out = Vec::new();
    add_faults(shape, value, "", &mut out);
    out
}

/// What is wrong with the type of a value.
fn mismatch(shape: Shape<'_>, value: &Value) -> Option<String> {
    let fits = match shape.wanted() {
        Wanted::Number => value.is_number(),
        Wanted::Text => value.is_string(),
        Wanted::Truth => value.is_boolean(),
        Wanted::Scalar => !value.is_object() && !value.is_array(),
        Wanted::Members => value.is_object(),
        Wanted::Items => value.is_array(),
        Wanted::Anything => true,
    };
    if fits || value.is_null() {
        return None;
    }
    let shown = format!("&{{{}}}", crate::patch::go_value(value));
    Some(match shape.wanted() {
        Wanted::Number => format!("expected numeric (int or float), got {}", go_type(value)),
        Wanted::Text => format!("expected string, got &value.valueUnstructured{{Value:{value}}}"),
        Wanted::Truth => format!("expected boolean, got {shown}"),
        Wanted::Members => format!("expected map, got {shown}"),
        Wanted::Items => format!("expected list, got {shown}"),
        Wanted::Scalar | Wanted::Anything => format!("expected any scalar, got {shown}"),
    })
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Array(_) => "[]interface {}",
        _ => "map[string]interface {}",
    }
}

fn add_faults(shape: Shape<'_>, value: &Value, path: &str, out: &mut Vec<String>) {
    if let Some(why) = mismatch(shape, value) {
        out.push(format!("{path}: {why}"));
        return;
    }
    let shape = shape.opened();
    match (shape.atom(Some(value)), value) {
        (Atom::Members(of), Value::Object(members)) => {
            for (name, member) in members {
                let below = format!("{path}.{name}");
                match of.known(name) {
                    Some((child, _)) => add_faults(child, member, &below, out),
                    None => out.push(format!("{below}: field not declared in schema")),
                }
            }
        }
        (Atom::Items(of), Value::Array(items)) => {
            let mut seen: Vec<String> = Vec::new();
            for (index, one) in items.iter().enumerate() {
                match of.key(one) {
                    Err(why) => out.push(format!("{path}: element {index}: {why}")),
                    Ok(key) => {
                        let shown = item::shown(&key);
                        if seen.contains(&key) {
                            out.push(format!("{path}: duplicate entries for key {shown}"));
                        }
                        add_faults(of.shape(), one, &format!("{path}{shown}"), out);
                        seen.push(key);
                    }
                }
            }
        }
        // what is replaced as a whole has a schema nevertheless
        (_, Value::Array(items)) => {
            for (index, one) in items.iter().enumerate() {
                add_faults(shape.inner(), one, &format!("{path}[{index}]"), out);
            }
        }
        _ => {}
    }
}
