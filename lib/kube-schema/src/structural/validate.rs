//! What a structural schema refuses, in the words of a server.
//!
//! Types, required members, enumerations, bounds of numbers, texts, lists and maps, `pattern`, `format`, and the
//! combinators. CEL rules are not evaluated.

use serde_json::{Map, Value};

use super::path::Path;
use super::{EMBEDDED, PRESERVE, TYPE_META, is};
use crate::validate::{Errors, FieldError, Kind};

/// Checks an object, which was pruned and defaulted. Members at its top are not checked if they are as in `old`:
/// the schema may have become stricter since.
pub fn validate(schema: &Value, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Errors::default();
    check(&mut errors, schema, object, &Path::ROOT, Place::Root(old));
    errors.0
}

/// Whether the metadata of an object is somebody else's business, and what the object was before.
#[derive(Clone, Copy)]
enum Place<'a> {
    Root(Option<&'a Value>),
    Inside,
}

impl Place<'_> {
    /// Of what is inside an object.
    fn below(schema: &Value) -> Self {
        if is(schema, EMBEDDED) {
            Self::Root(None)
        } else {
            Self::Inside
        }
    }

    /// The same, as if nothing had been there before: whether a value fits does not depend on that.
    fn anew(self) -> Self {
        match self {
            Self::Root(_) => Self::Root(None),
            Self::Inside => Self::Inside,
        }
    }
}

fn check(errors: &mut Errors, schema: &Value, value: &Value, path: &Path<'_>, place: Place<'_>) {
    if value.is_null() && is(schema, "nullable") {
        return;
    }
    if !has_type(schema, value) {
        let wanted = schema
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or("integer,string");
        let found = type_name(value);
        let detail = format!("{path} in body must be of type {wanted}: {found:?}");
        errors.add(path.to_string(), Kind::TypeInvalid, found, &detail);
        return;
    }
    let is_plain = is_plain(schema);
    if !is_plain {
        enumeration(errors, schema, value, path);
        bounds(errors, schema, value, path);
    }
    match value {
        Value::Object(members) => object(errors, schema, members, path, place),
        Value::Array(items) => {
            duplicates(errors, schema, items, path);
            if let Some(schema) = schema.get("items") {
                for (index, item) in items.iter().enumerate() {
                    check(errors, schema, item, &path.item(index), Place::below(schema));
                }
            }
        }
        Value::String(text) if !is_plain => super::text::check(errors, schema, text, path),
        _ => {}
    }
    if !is_plain {
        combinators(errors, schema, value, path, place);
    }
}

/// Whether a schema limits nothing of a value but its type and what its members and items are. Most do.
fn is_plain(schema: &Value) -> bool {
    let silent = |name: &str| {
        matches!(
            name,
            "type" | "properties" | "items" | "required" | "additionalProperties" | "description" | "default"
        )
    };
    schema
        .as_object()
        .is_some_and(|schema| schema.keys().all(|name| silent(name)))
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn has_type(schema: &Value, value: &Value) -> bool {
    let found = type_name(value);
    if is(schema, "x-kubernetes-int-or-string") {
        return matches!(found, "integer" | "string");
    }
    match schema.get("type").and_then(Value::as_str) {
        None | Some("") => true,
        Some("number") => matches!(found, "number" | "integer"),
        Some("integer") => found == "integer" || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        Some(wanted) => wanted == found,
    }
}

fn enumeration(errors: &mut Errors, schema: &Value, value: &Value, path: &Path<'_>) {
    let Some(supported) = schema.get("enum").and_then(Value::as_array) else {
        return;
    };
    if !supported.contains(value) {
        let shown: Vec<String> = supported.iter().map(Value::to_string).collect();
        let text = format!("supported values: {}", shown.join(", "));
        errors.add(path.to_string(), Kind::NotSupported(&[]), value.clone(), &text);
    }
}

fn bounds(errors: &mut Errors, schema: &Value, value: &Value, path: &Path<'_>) {
    let limit = |name: &str| schema.get(name).and_then(Value::as_f64);
    let count = |name: &str| schema.get(name).and_then(Value::as_u64);
    if let Some(factor) = limit("multipleOf") {
        multiple(errors, value, factor, path);
    }
    let mut invalid = |detail: String| {
        errors.invalid(
            path.to_string(),
            value.clone(),
            &format!("{path} in body {detail}"),
        );
    };
    if let Some(number) = value.as_f64() {
        let strict = |name: &str| {
            if is(schema, name) {
                "than"
            } else {
                "than or equal to"
            }
        };
        if let Some(least) = limit("minimum")
            && (number < least || (number <= least && is(schema, "exclusiveMinimum")))
        {
            invalid(format!(
                "should be greater {} {least}",
                strict("exclusiveMinimum")
            ));
        }
        if let Some(most) = limit("maximum")
            && (number > most || (number >= most && is(schema, "exclusiveMaximum")))
        {
            invalid(format!("should be less {} {most}", strict("exclusiveMaximum")));
        }
    }
    if let Some(text) = value.as_str() {
        let length = text.chars().count() as u64;
        if let Some(least) = count("minLength").filter(|least| length < *least) {
            invalid(format!("should be at least {least} chars long"));
        }
        if let Some(most) = count("maxLength").filter(|most| length > *most) {
            errors.add(path.to_string(), Kind::TooLong(most), Value::Null, "");
            return;
        }
    }
    let (length, least, most) = match value {
        Value::Array(items) => (items.len() as u64, "minItems", "maxItems"),
        Value::Object(members) => (members.len() as u64, "minProperties", "maxProperties"),
        _ => return,
    };
    let what = if value.is_array() { "items" } else { "properties" };
    if let Some(least) = count(least).filter(|least| length < *least) {
        errors.invalid(
            path.to_string(),
            length,
            &format!("{path} in body should have at least {least} {what}"),
        );
    }
    if let Some(most) = count(most).filter(|most| length > *most) {
        errors.add(path.to_string(), Kind::TooMany(most), length, "");
    }
}

/// Items of sets, and keys of maps, occur once.
fn duplicates(errors: &mut Errors, schema: &Value, items: &[Value], path: &Path<'_>) {
    let keys: Vec<&str> = match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => Vec::new(),
        Some("map") => {
            let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
            keys.into_iter().flatten().filter_map(Value::as_str).collect()
        }
        _ => return,
    };
    let identity = |item: &Value| -> Value {
        if keys.is_empty() {
            return item.clone();
        }
        let members = keys
            .iter()
            .filter_map(|key| Some(((*key).to_owned(), item.get(key)?.clone())));
        Value::Object(members.collect())
    };
    let mut seen: Vec<Value> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let own = identity(item);
        if seen.contains(&own) {
            errors.add(path.item(index).to_string(), Kind::Duplicate, own, "");
        } else {
            seen.push(own);
        }
    }
}

/// A server divides whole numbers by the whole part of the factor.
fn multiple(errors: &mut Errors, value: &Value, factor: f64, path: &Path<'_>) {
    let fits = match value.as_i64() {
        Some(_) if factor < 1.0 => {
            let why = format!(
                "factor MultipleOf declared for {path} must be positive: {}",
                factor as i64
            );
            errors.invalid(path.to_string(), factor as i64, &why);
            return;
        }
        Some(number) => number % (factor as i64) == 0,
        None => value
            .as_f64()
            .is_none_or(|number| (number / factor).fract() == 0.0),
    };
    if !fits {
        errors.invalid(
            path.to_string(),
            value.clone(),
            &format!("{path} in body should be a multiple of {factor}"),
        );
    }
}

fn object(
    errors: &mut Errors,
    schema: &Value,
    members: &Map<String, Value>,
    path: &Path<'_>,
    place: Place<'_>,
) {
    let join = |name: &str| path.member(name).to_string();
    let is_root = matches!(place, Place::Root(_));
    if is_root && !path.is_root() {
        for name in ["apiVersion", "kind"] {
            if !members.contains_key(name) {
                errors.required(join(name), "");
            }
        }
    }
    let required = schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if !members.contains_key(name) {
            errors.required(join(name), "");
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let others = schema
        .get("additionalProperties")
        .filter(|others| others.is_object());
    for (name, value) in members {
        if is_root && TYPE_META.contains(&name.as_str()) {
            continue;
        }
        if let Place::Root(Some(old)) = place
            && old.get(name) == Some(value)
        {
            continue;
        }
        let known = properties.and_then(|properties| properties.get(name));
        if let Some(schema) = known.or(others) {
            check(errors, schema, value, &path.member(name), Place::below(schema));
        } else if !is(schema, PRESERVE) && schema.get("additionalProperties") == Some(&Value::Bool(false)) {
            errors.forbidden(join(name), "");
        }
    }
}

fn combinators(errors: &mut Errors, schema: &Value, value: &Value, path: &Path<'_>, place: Place<'_>) {
    let fits = |schema: &Value| {
        let mut inner = Errors::default();
        check(&mut inner, schema, value, path, place.anew());
        inner.0.is_empty()
    };
    let list = |name: &str| schema.get(name).and_then(Value::as_array);
    let mut must = |detail: &str| {
        errors.invalid(
            path.to_string(),
            value.clone(),
            &format!("{path} in body must {detail}"),
        );
    };
    if list("anyOf").is_some_and(|any| !any.iter().any(fits)) {
        must("validate at least one schema (anyOf)");
    }
    if list("oneOf").is_some_and(|one| one.iter().filter(|schema| fits(schema)).count() != 1) {
        must("validate one and only one schema (oneOf)");
    }
    if list("allOf").is_some_and(|all| !all.iter().all(fits)) {
        must("validate all the schemas (allOf)");
    }
    if schema.get("not").is_some_and(fits) {
        must("not validate the schema (not)");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::validate;

    fn found(schema: Value, spec: Value) -> Vec<String> {
        let schema = json!({"type": "object", "properties": {"spec": schema}});
        let object = json!({"apiVersion": "a/v1", "kind": "K", "metadata": {"name": "n"}, "spec": spec});
        validate(&schema, &object, None)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn each_rule_refuses_in_the_words_of_a_server() {
        let object =
            |member: Value| json!({"type": "object", "required": ["n"], "properties": {"n": member}});
        let one = |member: Value, value: Value| found(object(member), json!({"n": value}));
        assert_eq!(found(object(json!({})), json!({})), ["spec.n: Required value"]);
        assert_eq!(
            one(json!({"type": "integer"}), json!("x")),
            ["spec.n: Invalid value: \"string\": spec.n in body must be of type integer: \"string\""]
        );
        assert_eq!(
            one(json!({"type": "integer", "minimum": 1}), json!(0)),
            ["spec.n: Invalid value: 0: spec.n in body should be greater than or equal to 1"]
        );
        assert_eq!(
            one(json!({"type": "array", "minItems": 1}), json!([])),
            ["spec.n: Invalid value: 0: spec.n in body should have at least 1 items"]
        );
        assert_eq!(one(json!({"enum": ["a", "b"]}), json!("c")).len(), 1);
        assert_eq!(one(json!({"maxLength": 2}), json!("abc")).len(), 1);
        assert_eq!(
            one(
                json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
                json!({"a": 1, "b": 1})
            )
            .len(),
            1
        );
        assert_eq!(one(json!({"items": {"type": "string"}}), json!([1])).len(), 1);
        assert_eq!(
            one(
                json!({"additionalProperties": {"type": "string"}}),
                json!({"k": 1})
            )
            .len(),
            1
        );
    }

    #[test]
    fn nothing_is_said_of_what_an_update_leaves_as_it_was() {
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}},
            "status": {"type": "object", "properties": {"n": {"type": "integer"}}}}});
        let old = json!({"metadata": {"name": "n"}, "spec": {"n": 0}});
        let paths = |new: Value| -> Vec<String> {
            let errors = validate(&schema, &new, Some(&old));
            errors.into_iter().map(|error| error.path).collect()
        };
        assert_eq!(
            paths(json!({"spec": {"n": 0}, "status": {"n": 1}})),
            Vec::<String>::new()
        );
        assert_eq!(
            paths(json!({"spec": {"n": 0}, "status": {"n": "x"}})),
            ["status.n"]
        );
        assert_eq!(paths(json!({"spec": {"n": -1}})), ["spec.n"]);
        let never = json!({"type": "object", "not": {"properties": {"spec": {"required": ["m"]}}}});
        assert_eq!(
            validate(&never, &old, Some(&old)).len(),
            0,
            "what is there does not fit what must not be, whether it is new or not"
        );
    }

    #[test]
    fn what_fits_passes() {
        let schema = json!({"type": "object", "properties": {
            "i": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "n": {"type": "integer", "nullable": true}, "f": {"type": "number"}, "e": {"enum": ["a"]}}});
        for spec in [
            json!({"i": 1}),
            json!({"i": "1%", "n": null, "f": 1, "e": "a"}),
            json!({"n": 2.0}),
        ] {
            assert_eq!(found(schema.clone(), spec), Vec::<String>::new());
        }
    }
}
