//! Strategic merge patches: merge patches by type.
//!
//! Lists are merged where their type has a patch strategy, by key or as sets, and directives order, retain, replace and
//! delete. The order of a merged list is part of the contract: items of the patch are in the patch's order, items that
//! only the server has keep their place relative to those of the patch that were there before.

mod directive;
mod list;
mod order;

use serde_json::{Map, Value};

pub use self::directive::go_value;
use self::directive::{DELETE_FROM, MARKER, SET_ORDER};
use super::PatchError;
use crate::table::{Kind, Merge, Table, TypeId};

type Object = Map<String, Value>;

/// An object of a built-in type with a strategic merge patch applied.
pub fn apply(table: &Table, of: TypeId, target: Value, patch: Value) -> Result<Value, PatchError> {
    let Value::Object(patch) = patch else {
        return Err(PatchError::Malformed("invalid JSON document".into()));
    };
    let original = match target {
        Value::Object(members) => members,
        _ => Object::new(),
    };
    let shape = Shape {
        table,
        kind: Some(&Kind::Struct(of)),
    };
    Ok(Value::Object(merge_object(original, patch, shape)?))
}

/// What is known about the members of a value.
#[derive(Clone, Copy)]
struct Shape<'t> {
    table: &'t Table,
    /// `None` where nothing is known: members are merged, lists replaced.
    kind: Option<&'t Kind>,
}

impl Shape<'_> {
    /// A member's shape (of its items, for a list) and how it merges.
    fn member(self, name: &str) -> (Self, Merge) {
        let (kind, merge) = match self.kind.map(Kind::target) {
            Some(Kind::Struct(id)) => match self.table.get(*id).field(name) {
                Some(field) => (Some(field.kind.target()), field.merge),
                None => (None, Merge::default()),
            },
            Some(Kind::Map(item)) => (Some(item.target()), Merge::default()),
            _ => (None, Merge::default()),
        };
        let kind = match kind {
            Some(Kind::List(item)) => Some(item.target()),
            other => other,
        };
        let table = self.table;
        (Self { table, kind }, merge)
    }
}

fn merge_object(mut original: Object, mut patch: Object, shape: Shape<'_>) -> Result<Object, PatchError> {
    if let Some(marker) = patch.get(MARKER).cloned() {
        return match marker.as_str() {
            Some("replace") => {
                patch.remove(MARKER);
                Ok(patch)
            }
            Some("delete") => Ok(Object::new()),
            _ => Err(directive::unknown(&marker, &Value::Object(patch))),
        };
    }
    directive::retain_keys(&mut original, &mut patch)?;
    list::ordered(&mut original, &mut patch, shape)?;
    for (name, value) in patch {
        if let Some(name) = name.strip_prefix(DELETE_FROM) {
            list::delete_from(&mut original, name, &value)?;
        } else if !name.starts_with(SET_ORDER) {
            merge_member(&mut original, name, value, shape)?;
        }
    }
    Ok(original)
}

fn merge_member(
    original: &mut Object,
    name: String,
    value: Value,
    shape: Shape<'_>,
) -> Result<(), PatchError> {
    if value.is_null() {
        original.remove(&name);
        return Ok(());
    }
    let (inner, merge) = shape.member(&name);
    let merged = match (original.remove(&name), value) {
        (Some(Value::Object(old)), Value::Object(new)) if !merge.replaces => {
            Some(Value::Object(merge_object(old, new, inner)?))
        }
        (Some(Value::Array(old)), Value::Array(new)) if merge.merges => {
            Some(Value::Array(list::merge(old, new, merge.key, inner)?))
        }
        (Some(Value::Object(_)), new @ Value::Object(_)) | (Some(Value::Array(_)), new @ Value::Array(_)) => {
            Some(new)
        }
        (_, mut new) => {
            directive::drop_nulls(&mut new);
            directive::strip(new)
        }
    };
    if let Some(merged) = merged {
        original.insert(name, merged);
    }
    Ok(())
}
