//! An object with what was applied to it.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::shape::{Atom, Items, Members, Shape};

/// The object with all that is applied; nothing is removed. Items of lists keep the order of the object where what
/// is applied has no other, and that of what is applied otherwise.
pub fn merge(shape: Shape<'_>, object: &Value, applied: &Value) -> Value {
    merged(shape, Some(object), Some(applied)).unwrap_or_default()
}

fn is_bare(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Object(members)) => members.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        _ => false,
    }
}

fn merged(shape: Shape<'_>, left: Option<&Value>, right: Option<&Value>) -> Option<Value> {
    let whole = right.or(left);
    let bare = is_bare(left) && is_bare(right);
    match shape.atom(whole) {
        Atom::Members(of) if !bare => members(of, left, right),
        Atom::Items(of) if !bare => items(&of, left, right),
        _ => whole.cloned(),
    }
}

fn members(of: Members<'_>, left: Option<&Value>, right: Option<&Value>) -> Option<Value> {
    let [left, right] = [left, right].map(|value| value.and_then(Value::as_object));
    let names: BTreeSet<&String> = [left, right].into_iter().flatten().flat_map(Map::keys).collect();
    let mut out = Map::new();
    for name in names {
        let [left, right] = [left, right].map(|members| members.and_then(|members| members.get(name)));
        if let Some(value) = merged(of.child(name).0, left, right) {
            out.insert(name.clone(), value);
        }
    }
    (!out.is_empty()).then_some(Value::Object(out))
}

/// The items of a list, each with its path element.
type Keyed<'v> = Vec<(String, &'v Value)>;

fn items(of: &Items<'_>, left: Option<&Value>, right: Option<&Value>) -> Option<Value> {
    let keyed = |value: Option<&'_ Value>| -> Vec<(String, Value)> {
        let items = value.and_then(Value::as_array);
        let items = items.into_iter().flatten();
        items
            .filter_map(|one| Some((of.key(one).ok()?, one.clone())))
            .collect()
    };
    let (left, right) = (keyed(left), keyed(right));
    let (left, right): (Keyed<'_>, Keyed<'_>) = (
        left.iter().map(|(key, one)| (key.clone(), one)).collect(),
        right.iter().map(|(key, one)| (key.clone(), one)).collect(),
    );
    let out = Lists { of, left, right }.merged();
    (!out.is_empty()).then_some(Value::Array(out))
}

struct Lists<'a, 's> {
    of: &'a Items<'s>,
    left: Keyed<'a>,
    right: Keyed<'a>,
}

impl Lists<'_, '_> {
    fn in_left(&self, key: &str) -> Option<&Value> {
        let mut same = self.left.iter().filter(|(other, _)| other == key);
        let first = same.next().map(|(_, one)| *one);
        // what is there more than once is not merged
        first.filter(|_| same.next().is_none())
    }

    fn is_in_right(&self, key: &str) -> bool {
        self.right.iter().any(|(other, _)| other == key)
    }

    fn one(&self, key: &str, right: Option<&Value>) -> Option<Value> {
        merged(self.of.shape(), self.in_left(key), right)
    }

    /// The items in their order: those that both have come as on the right, the others where they were.
    fn merged(&self) -> Vec<Value> {
        let has_left = |key: &String| self.left.iter().any(|(other, _)| other == key);
        let mut shared = self.right.iter().map(|(key, _)| key).filter(|key| has_left(key));
        let mut next = shared.next();
        let mut done: BTreeSet<&str> = BTreeSet::new();
        let mut out = Vec::new();
        let (mut at_left, mut at_right) = (0, 0);
        loop {
            let (left, right) = (self.left.get(at_left), self.right.get(at_right));
            if let (Some((key, _)), Some((other, one))) = (left, right) {
                if key == other {
                    done.insert(key);
                    out.extend(self.one(key, Some(one)));
                    at_left += 1;
                    at_right += 1;
                    next = shared.next();
                    continue;
                }
                if self.is_in_right(key) && next.is_some_and(|next| next != key) {
                    // both have it, but it is not its turn
                    at_left += 1;
                    continue;
                }
            }
            if let Some((key, one)) = left {
                if !self.is_in_right(key) {
                    out.extend(merged(self.of.shape(), Some(one), None));
                    at_left += 1;
                    continue;
                }
                if done.contains(key.as_str()) {
                    at_left += 1;
                }
            }
            let Some((key, one)) = right else {
                if left.is_none() {
                    return out;
                }
                continue;
            };
            done.insert(key);
            out.extend(self.one(key, Some(one)));
            at_right += 1;
            if next == Some(key) {
                next = shared.next();
            }
        }
    }
}
