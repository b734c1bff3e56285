//! Rules of a structural schema for texts: `pattern` and `format`.
//!
//! Formats are those that a server of custom resources enforces and whose rules are exact: dates, addresses, uuids,
//! base64, durations. The others (`uri`, `email`, `hostname`, `isbn`, …) pass, as do formats that are not known.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use regex_lite::Regex;
use serde_json::Value;

use super::path::Path;
use crate::validate::{Errors, FieldError, Kind};

/// Checks a text.
pub(super) fn check(errors: &mut Errors, schema: &Value, text: &str, path: &Path<'_>) {
    let rule = |name: &str| schema.get(name).and_then(Value::as_str);
    if let Some(pattern) = rule("pattern") {
        let detail = match Regex::new(pattern) {
            Ok(regex) if regex.is_match(text) => None,
            Ok(_) => Some(format!("{path} in body should match '{pattern}'")),
            Err(why) => Some(format!(
                "{path} in body should match '{pattern}, but pattern is invalid: {why}'"
            )),
        };
        if let Some(detail) = detail {
            errors.invalid(path.to_string(), text, &detail);
        }
    }
    if let Some(format) = rule("format")
        && !fits(&format.replace('-', ""), text)
    {
        let detail = format!("{path} in body must be of type {format}: {text:?}");
        errors.add(path.to_string(), Kind::TypeInvalid, text, &detail);
    }
}

/// Patterns of a schema that are no regular expressions, or none that are understood here; `path` is where the schema
/// stands.
pub fn bad_patterns(schema: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Errors::default();
    walk(&mut errors, schema, path);
    errors.0
}

fn walk(errors: &mut Errors, schema: &Value, path: &str) {
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
        && let Err(why) = Regex::new(pattern)
    {
        let why = format!("must be a valid regular expression, but isn't: {why}");
        errors.invalid(format!("{path}.pattern"), pattern, &why);
    }
    for name in ["items", "additionalProperties", "not"] {
        if let Some(inner) = schema.get(name) {
            walk(errors, inner, &format!("{path}.{name}"));
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, inner) in properties.into_iter().flatten() {
        walk(errors, inner, &format!("{path}.properties[{name}]"));
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        let list = schema.get(name).and_then(Value::as_array);
        for (index, inner) in list.into_iter().flatten().enumerate() {
            walk(errors, inner, &format!("{path}.{name}[{index}]"));
        }
    }
}

fn fits(format: &str, text: &str) -> bool {
    match format {
        // an empty time is the zero time
        "datetime" => text.is_empty() || is_time(text),
        "date" => is_date(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_network(text),
        "mac" => matches(text, &MAC),
        "uuid" => matches(text, &UUID),
        "byte" => matches(text, &BYTE),
        "duration" => matches(text, &DURATION) || matches(text, &DURATION_IN_WORDS),
        _ => true,
    }
}

/// The pattern of a format, read once; a test holds that it can be.
type Pattern = LazyLock<Option<Regex>>;

static MAC: Pattern = LazyLock::new(|| {
    Regex::new("^(([0-9A-Fa-f]{2}[:-]){5}|([0-9A-Fa-f]{2}[:-]){7})[0-9A-Fa-f]{2}$|^([0-9A-Fa-f]{4}\\.){2,3}[0-9A-Fa-f]{4}$").ok()
});
static UUID: Pattern = LazyLock::new(|| {
    Regex::new("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$").ok()
});
static BYTE: Pattern = LazyLock::new(|| {
    Regex::new("^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$").ok()
});
static DATE: Pattern = LazyLock::new(|| Regex::new("^[0-9]{4}-[0-9]{2}-[0-9]{2}$").ok());
static TIME: Pattern = LazyLock::new(|| {
    Regex::new("^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})$").ok()
});
/// What Go reads as a duration.
static DURATION: Pattern =
    LazyLock::new(|| Regex::new("^[+-]?(0|(([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$").ok());
/// A number with a unit in words, as in `3 days`.
static DURATION_IN_WORDS: Pattern = LazyLock::new(|| {
    Regex::new("^[+-]?([0-9]+ *(ns|us|µs|μs|ms|s|m|h|hr|d|w|nanos?|micros?|millis?|secs?|mins?|hours?|days?|wks?|weeks?|nanoseconds?|microseconds?|milliseconds?|seconds?|minutes?) *)+$").ok()
});

fn matches(text: &str, pattern: &Pattern) -> bool {
    pattern.as_ref().is_some_and(|regex| regex.is_match(text))
}

fn is_date(text: &str) -> bool {
    matches(text, &DATE) && text.parse::<jiff::civil::Date>().is_ok()
}

fn is_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    is_date(date) && matches(time, &TIME)
}

fn is_network(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let most = match address.parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    let is_number = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
    is_number && bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Path, bad_patterns, check};
    use crate::validate::Errors;

    fn found(schema: Value, text: &str) -> Vec<String> {
        let mut errors = Errors::default();
        check(&mut errors, &schema, text, &Path::ROOT.member("spec").member("t"));
        errors.0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_text_must_match_its_pattern() {
        let schema = json!({"pattern": "^[a-z]+$"});
        assert_eq!(found(schema.clone(), "abc"), Vec::<String>::new());
        assert_eq!(
            found(schema, "a1"),
            ["spec.t: Invalid value: \"a1\": spec.t in body should match '^[a-z]+$'"]
        );
        // as everywhere, a pattern without anchors may match inside
        assert_eq!(found(json!({"pattern": "b"}), "abc"), Vec::<String>::new());
    }

    #[test]
    fn formats_are_held() {
        for (format, good, bad) in [
            ("date-time", "2026-01-02T03:04:05.6+01:00", "2026-01-02 03:04:05Z"),
            ("date-time", "", "2026-13-02T03:04:05Z"),
            ("date", "2024-02-29", "2023-02-29"),
            ("ipv4", "10.0.0.1", "10.0.0.256"),
            ("ipv6", "::1", "10.0.0.1"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("uuid", "6A54EEE9-6408-46a7-8412-d8b923d55bd3", "6a54"),
            ("byte", "YQ==", "YQ="),
            ("mac", "00:1b:44:11:3a:b7", "00:1b:44"),
            ("duration", "1h30m", "1 fortnight"),
            ("duration", "3 days", "soon"),
        ] {
            assert_eq!(found(json!({"format": format}), good), Vec::<String>::new());
            assert_eq!(
                found(json!({"format": format}), bad),
                [format!(
                    "spec.t: Invalid value: {bad:?}: spec.t in body must be of type {format}: {bad:?}"
                )]
            );
        }
        assert_eq!(
            found(json!({"format": "int32"}), "x"),
            Vec::<String>::new(),
            "nothing is known of it"
        );
    }

    #[test]
    fn patterns_that_are_none_are_found_where_they_stand() {
        let schema = json!({"properties": {"a": {"items": {"pattern": "("}}, "b": {"anyOf": [{"pattern": "x"}, {"pattern": "["}]}}});
        let found = bad_patterns(&schema, "schema");
        let paths: Vec<&str> = found.iter().map(|error| error.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "schema.properties[a].items.pattern",
                "schema.properties[b].anyOf[1].pattern"
            ]
        );
    }
}
