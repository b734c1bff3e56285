//! The difference of two objects as sets of fields.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::set::FieldSet;
use super::shape::{Atom, Items, Members, Shape};

/// What is different between two objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// In the second one only.
    pub added: FieldSet,
    /// In both, with other values.
    pub modified: FieldSet,
    /// In the first one only.
    pub removed: FieldSet,
}

/// What became of a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Added,
    Modified,
    Removed,
}

/// Compares an object with what became of it.
pub fn compare(shape: Shape<'_>, old: Option<&Value>, new: Option<&Value>) -> Comparison {
    let mut out = Comparison::default();
    differ(shape, old, new, &mut out);
    out
}

impl Comparison {
    /// Adds what a comparison further down found.
    fn take(&mut self, key: &str, change: Option<Change>, below: Self) {
        let sets = [
            (Change::Added, &mut self.added, below.added),
            (Change::Modified, &mut self.modified, below.modified),
            (Change::Removed, &mut self.removed, below.removed),
        ];
        for (one, set, below) in sets {
            set.put(key.to_owned(), change == Some(one), below);
        }
    }
}

/// Adds the differences below a value; returns what became of the value itself.
fn differ(
    shape: Shape<'_>,
    old: Option<&Value>,
    new: Option<&Value>,
    out: &mut Comparison,
) -> Option<Change> {
    if old == new {
        return None;
    }
    let own = match (old, new) {
        (None, _) => Change::Added,
        (_, None) => Change::Removed,
        _ => Change::Modified,
    };
    let is_bare = |value: Option<&Value>| match value {
        None | Some(Value::Null) => true,
        Some(Value::Object(members)) => members.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        _ => false,
    };
    let leaf = is_bare(old) && is_bare(new);
    match (shape.atom(new.or(old)), shape.atom(old.or(new))) {
        (Atom::Members(of), Atom::Members(_)) if !leaf => members(of, old, new, out),
        (Atom::Items(of), Atom::Items(_)) if !leaf => items(&of, old, new, out),
        _ => return Some(own),
    }
    (own != Change::Modified).then_some(own)
}

fn members(of: Members<'_>, old: Option<&Value>, new: Option<&Value>, out: &mut Comparison) {
    let [old, new] = [old, new].map(|value| value.and_then(Value::as_object));
    let names: BTreeSet<&String> = [old, new].into_iter().flatten().flat_map(Map::keys).collect();
    for name in names {
        let [old, new] = [old, new].map(|members| members.and_then(|members| members.get(name)));
        let mut below = Comparison::default();
        let change = differ(of.child(name).0, old, new, &mut below);
        out.take(&format!("f:{name}"), change, below);
    }
}

fn items(of: &Items<'_>, old: Option<&Value>, new: Option<&Value>, out: &mut Comparison) {
    let lists = [old, new].map(|value| {
        let items = value.and_then(Value::as_array);
        let items = items.into_iter().flatten();
        items
            .filter_map(|one| Some((of.key(one).ok()?, one)))
            .collect::<Vec<_>>()
    });
    let keys: BTreeSet<&String> = lists.iter().flatten().map(|(key, _)| key).collect();
    for key in keys {
        let [old, new] = lists.each_ref().map(|list| {
            let same = list.iter().filter(|(other, _)| other == key);
            same.map(|(_, one)| *one).collect::<Vec<&Value>>()
        });
        let mut below = Comparison::default();
        let change = match (old.as_slice(), new.as_slice()) {
            ([_, _, ..], [_, _, ..]) => (old != new).then_some(Change::Modified),
            // what is there more than once has no fields of its own
            ([_, _, ..], one) => {
                if let Some(one) = one.first() {
                    let change = differ(of.shape(), None, Some(one), &mut below);
                    out.take(key, change, std::mem::take(&mut below));
                }
                Some(Change::Removed)
            }
            (one, [_, _, ..]) => {
                if let Some(one) = one.first() {
                    differ(of.shape(), Some(one), None, &mut below);
                }
                Some(Change::Added)
            }
            (old, new) => differ(of.shape(), old.first().copied(), new.first().copied(), &mut below),
        };
        out.take(key, change, below);
    }
}
