//! Objects as text of a Helm template: YAML with actions.
//!
//! A text that contains an action is written in quotes with the action as it is. So an action within a text has no
//! quotes; strings in it are in backquotes. [`action`], [`when`] and [`optional`] make what is more than a text.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

/// Begins a value that is an action as a whole. No text of an object contains it.
const ACTION: char = '\u{E000}';
/// Begins a key, or the first of a list, that exists only under a condition.
const WHEN: char = '\u{E001}';

/// A value that an action prints, such as a number or `toJson`.
pub(super) fn action(text: &str) -> Value {
    Value::String(format!("{ACTION}{{{{ {text} }}}}"))
}

/// Items of a list that exist only if the condition holds.
pub(super) fn when(condition: &str, items: Vec<Value>) -> Value {
    block(&format!("if {condition}"), items)
}

/// Items of a list for each element of another one, which they call `.`.
pub(super) fn each(list: &str, items: Vec<Value>) -> Value {
    block(&format!("range {list}"), items)
}

fn block(opening: &str, items: Vec<Value>) -> Value {
    let mut wrapped = Map::new();
    wrapped.insert(format!("{WHEN}{opening}"), Value::Array(items));
    Value::Object(wrapped)
}

/// The key of a field that exists only if the condition holds.
pub(super) fn optional(condition: &str, key: &str) -> String {
    format!("{WHEN}{condition}{WHEN}{key}")
}

/// A field of an object, which is made if it does not exist.
pub(super) fn put(object: &mut Value, pointer: &str, key: &str, value: Value) {
    if let Some(fields) = object.pointer_mut(pointer).and_then(Value::as_object_mut) {
        fields.insert(key.to_owned(), value);
    }
}

/// One object as a document, only if the condition holds.
pub(super) fn document(condition: Option<&str>, object: &Value) -> String {
    let mut text = String::new();
    if let Some(condition) = condition {
        line(&mut text, 0, &format!("{{{{- if {condition} }}}}"));
    }
    text.push_str("---\n");
    fields(&mut text, 0, object);
    if condition.is_some() {
        line(&mut text, 0, "{{- end }}");
    }
    text
}

fn line(text: &mut String, depth: usize, content: &str) {
    // Writing to a text does not fail.
    let _ = writeln!(text, "{:width$}{content}", "", width = 2 * depth);
}

/// The fields of an object, each in a line of its own.
fn fields(text: &mut String, depth: usize, object: &Value) {
    for (key, value) in object.as_object().into_iter().flatten() {
        match key.strip_prefix(WHEN).and_then(|rest| rest.split_once(WHEN)) {
            Some((condition, key)) => {
                line(text, depth, &format!("{{{{- if {condition} }}}}"));
                field(text, depth, key, value);
                line(text, depth, "{{- end }}");
            }
            None => field(text, depth, key, value),
        }
    }
}

fn field(text: &mut String, depth: usize, key: &str, value: &Value) {
    let key = scalar(&json!(key));
    match value {
        Value::Object(inner) if !inner.is_empty() => {
            line(text, depth, &format!("{key}:"));
            fields(text, depth + 1, value);
        }
        Value::Array(items) if !items.is_empty() => {
            line(text, depth, &format!("{key}:"));
            list(text, depth, items);
        }
        _ => line(text, depth, &format!("{key}: {}", scalar(value))),
    }
}

fn list(text: &mut String, depth: usize, items: &[Value]) {
    for item in items {
        if let Some((opening, items)) = block_of(item) {
            line(text, depth, &format!("{{{{- {opening} }}}}"));
            list(text, depth, items);
            line(text, depth, "{{- end }}");
            continue;
        }
        match item {
            Value::Object(inner) if !inner.is_empty() => {
                let mut block = String::new();
                fields(&mut block, depth + 1, item);
                indent_first(text, depth, &block);
            }
            Value::Array(inner) if !inner.is_empty() => {
                let mut block = String::new();
                list(&mut block, depth + 1, inner);
                indent_first(text, depth, &block);
            }
            _ => line(text, depth, &format!("- {}", scalar(item))),
        }
    }
}

/// Puts the dash of a list before the first line of a block. A block that begins with a condition has it in a line
/// above, which is an empty field to nobody: the block is put below the dash.
fn indent_first(text: &mut String, depth: usize, block: &str) {
    let blanks = " ".repeat(2 * (depth + 1));
    match block.strip_prefix(&blanks) {
        Some(rest) if !rest.starts_with("{{-") => {
            let _ = write!(text, "{}- {rest}", " ".repeat(2 * depth));
        }
        _ => {
            line(text, depth, "-");
            text.push_str(block);
        }
    }
}

fn block_of(item: &Value) -> Option<(&str, &[Value])> {
    let (key, items) = item.as_object()?.iter().next()?;
    Some((key.strip_prefix(WHEN)?, items.as_array()?))
}

/// A value without lines of its own: JSON is YAML. Texts that need no quotes have none.
fn scalar(value: &Value) -> String {
    let Value::String(text) = value else {
        return value.to_string();
    };
    if let Some(action) = text.strip_prefix(ACTION) {
        return action.to_owned();
    }
    if is_plain(text) {
        text.clone()
    } else {
        value.to_string()
    }
}

/// Whether a text is read as that text without quotes.
fn is_plain(text: &str) -> bool {
    let starts_as_word = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/');
    let has_only = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let lower = text.to_ascii_lowercase();
    let is_word = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"].contains(&lower.as_str());
    starts_as_word && text.chars().all(has_only) && !is_word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_read_back_as_it_was() {
        let object = json!({
            "kind": "Thing", "count": 3, "on": true, "nothing": null, "empty": {}, "none": [],
            "texts": ["plain", "true", "1", "", "a: b", "it's", "line\nline", "\"q\"", "- x", "#", "~", "2026-01-01"],
            "nested": [{"a": {"b": [1, [2, 3], {"c": "d"}]}}, [["x"]]],
            "a key: with": "{ [ & * ! | > % @ `",
        });
        let text = document(None, &object);
        let read: Value = serde_saphyr::from_str(text.strip_prefix("---\n").unwrap()).unwrap();
        assert_eq!(read, object, "{text}");
    }

    #[test]
    fn actions_stay_as_they_are() {
        let mut object = json!({
            "kind": "Thing", "number": action(".Values.a | toJson"), "text": "--v={{ .Values.b }}",
            "list": ["always", when("$gates.A", vec![json!({"b": 1, "c": 2}), json!("d")]), each(".Values.c", vec![action("toJson .")])],
        });
        put(&mut object, "", &optional("$gates.B", "more"), json!({"x": "z"}));
        let text = document(Some(".Values.on"), &object);
        let expected = "{{- if .Values.on }}\n---\nkind: Thing\nlist:\n- always\n{{- if $gates.A }}\n- b: 1\n  c: 2\n- d\n\
                        {{- end }}\n{{- range .Values.c }}\n- {{ toJson . }}\n{{- end }}\nnumber: {{ .Values.a | toJson }}\ntext: \"--v={{ .Values.b }}\"\n\
                        {{- if $gates.B }}\nmore:\n  x: z\n{{- end }}\n{{- end }}\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_condition_on_the_first_field_of_an_item_is_below_its_dash() {
        let mut item = json!({});
        put(&mut item, "", &optional("$a", "b"), json!(1));
        let text = document(None, &json!({"list": [item]}));
        assert_eq!(text, "---\nlist:\n-\n  {{- if $a }}\n  b: 1\n  {{- end }}\n");
    }
}
