//! Which columns a kind has.

mod cells;
mod kinds;

use serde_json::Value;

use crate::api::Call;
use crate::registry::Schema;

/// A column.
pub(super) struct Column {
    pub(super) name: String,
    /// JSON type.
    pub(super) kind: String,
    pub(super) format: String,
    pub(super) description: String,
    /// Above zero, only wide output shows it.
    pub(super) priority: i64,
    pub(super) cell: Cell,
}

/// Where a cell's value comes from.
pub(super) enum Cell {
    Name,
    Age,
    /// A member, or `<none>`.
    Pointer(&'static str),
    /// A member, or nothing.
    Optional(&'static str),
    /// A count, or zero.
    Count(&'static str),
    /// How many items or members.
    Length(&'static str),
    /// A time as an age.
    Date(String),
    /// A member, or nothing: custom columns.
    Custom(String),
    Function(fn(&Value) -> Value),
}

fn column(name: &str, kind: &str, cell: Cell) -> Column {
    Column {
        name: name.into(),
        kind: kind.into(),
        format: if name == "Name" {
            "name".into()
        } else {
            String::new()
        },
        description: String::new(),
        priority: 0,
        cell,
    }
}

fn wide(name: &str, cell: Cell) -> Column {
    Column {
        priority: 1,
        ..column(name, "string", cell)
    }
}

pub(super) fn columns(call: &Call<'_>) -> Vec<Column> {
    if let Schema::Structural(version) = &call.version.schema {
        return custom(version);
    }
    let kind = call.resource.kind.as_ref();
    let mut out = kinds::columns(kind);
    for column in &mut out {
        column.description = description(kind, &column.name);
    }
    out
}

/// A server's description of a column: a kind (or `*`), the column and a JSON text a line, as kube-apiserver 1.34 has
/// them.
fn description(kind: &str, column: &str) -> String {
    let lines = include_str!("descriptions.txt").lines();
    let found = lines.filter_map(|line| {
        let mut words = line.splitn(3, '\t');
        let (of, name, text) = (words.next()?, words.next()?, words.next()?);
        (name == column && (of == kind || of == "*")).then_some((of == kind, text))
    });
    // a kind's own word counts more
    let best = found.max_by_key(|(own, _)| *own);
    best.and_then(|(_, text)| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

/// The columns of a definition; its paths without filters are pointers.
fn custom(version: &Value) -> Vec<Column> {
    let mut out = vec![column("Name", "string", Cell::Name)];
    let text = |of: &Value, name: &str| {
        of.get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let given = version.get("additionalPrinterColumns").and_then(Value::as_array);
    for one in given.into_iter().flatten() {
        let pointer = pointer(&text(one, "jsonPath"));
        let kind = text(one, "type");
        let cell = if kind == "date" {
            Cell::Date(pointer)
        } else {
            Cell::Custom(pointer)
        };
        out.push(Column {
            name: text(one, "name"),
            format: text(one, "format"),
            description: match text(one, "description") {
                given if given.is_empty() => {
                    let path = text(one, "jsonPath");
                    format!("Custom resource definition column (in JSONPath format): {path}")
                }
                given => given,
            },
            priority: one.get("priority").and_then(Value::as_i64).unwrap_or_default(),
            kind,
            cell,
        });
    }
    if given.is_none() {
        out.push(column("Age", "date", Cell::Age));
    }
    for column in out.iter_mut().filter(|column| column.description.is_empty()) {
        column.description = description("", &column.name);
    }
    out
}

/// A path of a definition's column as a JSON pointer: `.metadata.labels.example\.com/a` as
/// `/metadata/labels/example.com~1a`.
fn pointer(path: &str) -> String {
    let mut out = String::new();
    let mut chars = path.chars();
    while let Some(next) = chars.next() {
        match next {
            '.' => out.push('/'),
            '\\' => push(&mut out, chars.next()),
            other => push(&mut out, Some(other)),
        }
    }
    out
}

/// Adds a character of a name.
fn push(pointer: &mut String, next: Option<char>) {
    match next {
        Some('/') => pointer.push_str("~1"),
        Some('~') => pointer.push_str("~0"),
        other => pointer.extend(other),
    }
}

#[cfg(test)]
mod tests {
    use super::pointer;

    #[test]
    fn a_dot_that_is_escaped_is_part_of_a_name() {
        let cases = [
            (".spec.replicas", "/spec/replicas"),
            (
                r".metadata.labels.example\.com/app",
                "/metadata/labels/example.com~1app",
            ),
            (".spec.images[*].name", "/spec/images[*]/name"),
        ];
        for (path, expected) in cases {
            assert_eq!(pointer(path), expected);
        }
    }
}
