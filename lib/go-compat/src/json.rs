//! JSON text as Go's `encoding/json` writes it: sorted keys, no spaces, HTML-safe strings, Go's float spelling.

use std::fmt::Write as _;

use serde_json::{Map, Number, Value};

/// How integers are spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integers {
    /// Digit by digit, as Go writes its integer types.
    Exact,
    /// As a `float64`, as Go writes a number it read into an `interface{}`: beyond 2⁵³ the low digits are gone.
    AsFloat,
}

/// The text Go would write for this value.
pub fn to_go_json(value: &Value) -> String {
    encode(value, Integers::Exact)
}

/// As [`to_go_json`], with the spelling of integers chosen.
pub fn encode(value: &Value, integers: Integers) -> String {
    let mut out = String::new();
    write_value(&mut out, value, integers);
    out
}

/// The value without what a Go client leaves out: nulls, empty texts, lists and objects. Items of lists keep their
/// places, as null. `None` if nothing is left. Two values are the same to such a client if these are equal.
pub fn without_empty(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::String(text) if text.is_empty() => None,
        Value::Array(all) if all.is_empty() => None,
        Value::Array(all) => {
            let items = all.iter().map(|one| without_empty(one).unwrap_or_default());
            Some(items.collect())
        }
        Value::Object(all) => {
            let kept = all
                .iter()
                .filter_map(|(name, one)| Some((name.clone(), without_empty(one)?)));
            let kept: Map<String, Value> = kept.collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        other => Some(other.clone()),
    }
}

fn write_value(out: &mut String, value: &Value, integers: Integers) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(out, number, integers),
        Value::String(text) => write_string(out, text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(out, item, integers);
            }
            out.push(']');
        }
        Value::Object(members) => write_object(out, members, integers),
    }
}

fn write_object(out: &mut String, members: &Map<String, Value>, integers: Integers) {
    // the map's own order depends on a build feature of serde_json
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_unstable_by_key(|(key, _)| *key);
    out.push('{');
    for (index, (key, value)) in sorted.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(out, key);
        out.push(':');
        write_value(out, value, integers);
    }
    out.push('}');
}

fn write_number(out: &mut String, number: &Number, integers: Integers) {
    match number.as_f64() {
        Some(float) if number.is_f64() || integers == Integers::AsFloat => write_float(out, float),
        _ => out.push_str(&number.to_string()),
    }
}

/// Shortest digits that read back the same; exponents only below 1e-6 and from 1e21, and always signed.
fn write_float(out: &mut String, float: f64) {
    let size = float.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{float:e}");
        match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => {
                out.push_str(digits);
                out.push_str("e+");
                out.push_str(exponent);
            }
            _ => out.push_str(&text),
        }
    } else {
        out.push_str(&float.to_string());
    }
}

/// Writes a quoted string: HTML characters and the two line separators of JavaScript escaped.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                // writing to a String cannot fail
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}

/// The same JSON text with the escapes of HTML characters and of the two line separators that Go writes. These are
/// in quoted strings only, so that the value stays the same.
pub fn html_safe(json: Vec<u8>) -> Vec<u8> {
    const SEPARATORS: [(&[u8], &[u8]); 2] = [(b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029")];
    if !json.iter().any(|byte| matches!(byte, b'<' | b'>' | b'&' | 0xe2)) {
        return json;
    }
    let mut safe = Vec::with_capacity(json.len().saturating_add(64));
    let mut rest = json.as_slice();
    while let Some((first, after)) = rest.split_first() {
        let separator = SEPARATORS.iter().find(|(raw, _)| rest.starts_with(raw));
        rest = after;
        match first {
            b'<' => safe.extend_from_slice(b"\\u003c"),
            b'>' => safe.extend_from_slice(b"\\u003e"),
            b'&' => safe.extend_from_slice(b"\\u0026"),
            _ => match separator {
                Some((raw, escaped)) => {
                    safe.extend_from_slice(escaped);
                    rest = after.get(raw.len().saturating_sub(1)..).unwrap_or_default();
                }
                None => safe.push(*first),
            },
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::{Integers, encode, html_safe, to_go_json, without_empty};
    use serde_json::{Value, json};

    #[test]
    fn texts_of_other_writers_get_the_escapes_of_go() {
        let value = json!({"a&b": ["x <y> && \u{2028}\u{2029}", "\u{20ac}ü😀", "\\u003c", 1]});
        let plain = serde_json::to_vec(&value).unwrap();
        assert_eq!(String::from_utf8(html_safe(plain)).unwrap(), to_go_json(&value));
        assert_eq!(html_safe(br#"{"a":1}"#.to_vec()), br#"{"a":1}"#);
    }

    #[test]
    fn what_go_leaves_out_is_left_out_and_items_of_lists_keep_their_places() {
        let value =
            json!({"a": null, "b": "", "c": {"d": {}}, "e": [], "f": [1, {}, null], "g": false, "h": 0});
        let kept = json!({"f": [1, null, null], "g": false, "h": 0});
        assert_eq!(without_empty(&value), Some(kept));
        assert_eq!(
            [json!({"a": {}}), Value::Null].iter().find_map(without_empty),
            None
        );
    }

    #[test]
    fn keys_are_sorted_bytewise() {
        assert_eq!(
            to_go_json(&json!({"b": 1, "a": [true, null], "B": {}, "é": 0})),
            r#"{"B":{},"a":[true,null],"b":1,"é":0}"#
        );
    }

    #[test]
    fn strings_are_escaped_for_html() {
        assert_eq!(
            to_go_json(&json!(
                "<a href=\"x\\y\">&\n\r\t\u{8}\u{c}\u{1}\u{7f}\u{2028}\u{2029}ü😀"
            )),
            "\"\\u003ca href=\\\"x\\\\y\\\"\\u003e\\u0026\\n\\r\\t\\b\\f\\u0001\u{7f}\\u2028\\u2029ü😀\""
        );
    }

    #[test]
    fn floats_are_spelled_as_go_spells_them() {
        for (float, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1, "0.1"),
            (1e-6, "0.000001"),
            (1.5e-7, "1.5e-7"),
            (1e-10, "1e-10"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (-2.5e300, "-2.5e+300"),
        ] {
            assert_eq!(to_go_json(&json!(float)), text);
        }
    }

    #[test]
    fn integers_lose_digits_only_as_floats() {
        let big = json!(i64::MAX);
        assert_eq!(to_go_json(&big), "9223372036854775807");
        assert_eq!(encode(&big, Integers::AsFloat), "9223372036854776000");
        assert_eq!(encode(&json!(1000), Integers::AsFloat), "1000");
    }
}
