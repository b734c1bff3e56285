//! Objects as rows with columns, as `kubectl get` shows them.

mod columns;

use jiff::Timestamp;
use serde_json::{Value, json};

use self::columns::{Cell, Column, columns};
use crate::api::Call;
use crate::form::Form;
use crate::object::metadata_text;
use crate::status::Failure;

/// What is wrong with the parameters of a table, if one is requested.
pub(crate) fn check(call: &Call<'_>) -> Result<(), Failure> {
    let include = call.query.text("includeObject");
    if call.form != Form::Table || matches!(include, "" | "None" | "Metadata" | "Object") {
        return Ok(());
    }
    Err(Failure::bad_request(format!(
        "Unable to convert to Table as requested: includeObject: Invalid value: {include:?}: must be 'Metadata', 'Object', 'None', or empty"
    )))
}

/// A table of objects. Rows carry as much of their object as `includeObject` requests.
pub(crate) fn table(call: &Call<'_>, objects: &[Value], with_header: bool) -> Value {
    let columns = columns(call);
    let rows: Vec<Value> = objects.iter().map(|object| row(call, &columns, object)).collect();
    let definitions: Vec<Value> = columns.iter().map(definition).collect();
    let definitions: Value = if with_header {
        definitions.into()
    } else {
        Value::Null
    };
    // a list's own version is added by the caller
    let version = objects
        .first()
        .map_or("", |object| metadata_text(object, "resourceVersion"));
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": version},
        "columnDefinitions": definitions, "rows": rows,
    })
}

fn definition(column: &Column) -> Value {
    json!({
        "name": column.name, "type": column.kind, "format": column.format,
        "description": column.description, "priority": column.priority,
    })
}

fn row(call: &Call<'_>, columns: &[Column], object: &Value) -> Value {
    let cells: Vec<Value> = columns
        .iter()
        .map(|column| cell(&column.cell, object, call.now))
        .collect();
    let shown = match call.query.text("includeObject") {
        "None" => Value::Null,
        "Object" => whole(call, object),
        _ => json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
            "metadata": object.get("metadata").cloned().unwrap_or_default()}),
    };
    json!({"cells": cells, "object": shown})
}

/// The object of a row names its kind, also where the items of a list do not: `kubectl get --sort-by` reads it.
fn whole(call: &Call<'_>, object: &Value) -> Value {
    let mut whole = object.clone();
    if let Value::Object(members) = &mut whole {
        let types = [
            ("apiVersion", call.api_version()),
            ("kind", call.resource.kind.to_string()),
        ];
        for (name, text) in types {
            members.entry(name).or_insert_with(|| text.into());
        }
    }
    whole
}

fn cell(cell: &Cell, object: &Value, now: Timestamp) -> Value {
    match cell {
        Cell::Name => metadata_text(object, "name").into(),
        Cell::Age => age(metadata_text(object, "creationTimestamp"), now).into(),
        Cell::Pointer(pointer) => object
            .pointer(pointer)
            .cloned()
            .unwrap_or_else(|| json!("<none>")),
        Cell::Optional(pointer) => object.pointer(pointer).cloned().unwrap_or_else(|| "".into()),
        Cell::Count(pointer) => object
            .pointer(pointer)
            .and_then(Value::as_i64)
            .unwrap_or_default()
            .into(),
        Cell::Length(pointer) => match object.pointer(pointer) {
            Some(Value::Array(items)) => items.len().into(),
            Some(Value::Object(members)) => members.len().into(),
            _ => 0.into(),
        },
        Cell::Date(pointer) => match object.pointer(pointer).and_then(Value::as_str) {
            Some(time) => age(time, now).into(),
            None => Value::Null,
        },
        Cell::Custom(pointer) => custom(object, pointer),
        Cell::Function(function) => function(object),
    }
}

/// What a column of a definition shows. Of many values the text, as a server joins them.
fn custom(object: &Value, pointer: &str) -> Value {
    let Some((list, rest)) = pointer.split_once("[*]") else {
        return object.pointer(pointer).cloned().unwrap_or(Value::Null);
    };
    let items = object.pointer(list).and_then(Value::as_array);
    let found = items.into_iter().flatten().filter_map(|item| item.pointer(rest));
    let texts: Vec<String> = found
        .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        .collect();
    texts.join(",").into()
}

/// A time as the span since then, in the short form of kubectl.
fn age(time: &str, now: Timestamp) -> String {
    match time.parse::<Timestamp>() {
        Ok(then) => span(now.as_second() - then.as_second()),
        Err(_) => "<unknown>".into(),
    }
}

fn span(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let pair = |large: i64, unit: &str, rest: i64, small: &str| match rest {
        0 => format!("{large}{unit}"),
        rest => format!("{large}{unit}{rest}{small}"),
    };
    match seconds {
        ..-1 => "<invalid>".into(),
        -1..0 => "0s".into(),
        0..120 => format!("{seconds}s"),
        120..600 => pair(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => pair(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => pair(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => pair(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn ages_are_short() {
        let cases = [
            (5, "5s"),
            (119, "119s"),
            (125, "2m5s"),
            (900, "15m"),
            (10_860, "3h1m"),
            (90_000, "25h"),
            (180_000, "2d2h"),
        ];
        for (seconds, text) in cases {
            assert_eq!(span(seconds), text);
        }
    }
}
