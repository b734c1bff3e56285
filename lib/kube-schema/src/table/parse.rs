//! Reads the text form of the table. A line that starts with a blank is a field of the type above it.

use std::collections::BTreeMap;

use super::{Apply, Field, Kind, Merge, Omit, Table, Type, TypeId};

pub(super) fn table(text: &'static str) -> Table {
    let names: BTreeMap<&'static str, TypeId> = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with(' '))
        .enumerate()
        .map(|(index, name)| (name, TypeId(index)))
        .collect();
    let mut types: Vec<Type> = Vec::with_capacity(names.len());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix(' ') {
            if let (Some(of), Some(field)) = (types.last_mut(), field(rest, &names)) {
                of.fields.push(field);
            }
        } else {
            let fields = Vec::new();
            types.push(Type { name: line, fields });
        }
    }
    Table { types, names }
}

fn field(line: &'static str, names: &BTreeMap<&'static str, TypeId>) -> Option<Field> {
    let mut words = line.split(' ');
    let (name, kind) = (words.next()?, kind(words.next()?, names)?);
    let (mut omit, mut merge) = (Omit::Never, Merge::default());
    let mut numbers = Vec::new();
    let mut apply = Apply::Plain;
    for word in words {
        if let Some(path) = word.strip_prefix('#') {
            numbers = path.split('.').map(str::parse).collect::<Result<_, _>>().ok()?;
            continue;
        }
        match word.split_once('=') {
            Some(("key", key)) => merge.key = Some(key),
            Some((list @ ("list" | "leaves"), keys)) => {
                let key = |key: &'static str| match key.split_once('=') {
                    Some((key, default)) => (key, Some(default)),
                    None => (key, None),
                };
                let keys = keys.split(',').map(key).collect();
                apply = if list == "list" {
                    Apply::Keys(keys)
                } else {
                    Apply::Leaves(keys)
                };
            }
            Some(("strategy", strategies)) => {
                for strategy in strategies.split(',') {
                    merge.merges |= strategy == "merge";
                    merge.replaces |= strategy == "replace";
                    merge.retains_keys |= strategy == "retainKeys";
                }
            }
            _ if word == "atomic" => apply = Apply::Atomic,
            _ if word == "set" => apply = Apply::Set,
            _ if word == "omitzero" => omit = Omit::Zero,
            _ if word == "omitempty" && omit == Omit::Never => omit = Omit::Empty,
            _ => {}
        }
    }
    Some(Field {
        name,
        kind,
        numbers,
        omit,
        merge,
        apply,
    })
}

fn kind(text: &'static str, names: &BTreeMap<&'static str, TypeId>) -> Option<Kind> {
    if let Some(inner) = text.strip_prefix('*') {
        return Some(Kind::Pointer(Box::new(kind(inner, names)?)));
    }
    if let Some(inner) = text.strip_prefix("[]") {
        return Some(Kind::List(Box::new(kind(inner, names)?)));
    }
    if let Some(inner) = text.strip_prefix("{}") {
        return Some(Kind::Map(Box::new(kind(inner, names)?)));
    }
    let (base, named) = text.split_once(':').unwrap_or((text, text));
    Some(match base {
        "string" => Kind::String(named),
        "bool" => Kind::Bool,
        "int" | "int32" | "int64" | "uint16" => Kind::Int(named),
        "float64" => Kind::Float,
        "bytes" => Kind::Bytes,
        "time" => Kind::Time,
        "microtime" => Kind::MicroTime,
        "duration" => Kind::Duration,
        "quantity" => Kind::Quantity,
        "intorstring" => Kind::IntOrString,
        "any" => Kind::Any,
        _ => Kind::Struct(*names.get(text)?),
    })
}
