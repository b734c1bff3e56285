//! Sets of fields, as `managedFields` has them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::item;
use super::shape::{Atom, Shape};

/// A set of fields. A path element is spelled as in `fieldsV1`: `f:spec`, `k:{"name":"main"}`, `v:"item"`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet(BTreeMap<String, Entry>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Entry {
    /// Whether the field itself is in the set.
    is_member: bool,
    /// What is in the set below it.
    below: FieldSet,
}

impl Entry {
    fn is_empty(&self) -> bool {
        !self.is_member && self.below.is_empty()
    }
}

impl FieldSet {
    /// The set of these fields, each a path of names.
    pub fn of(paths: &[&[&str]]) -> Self {
        let mut out = Self::default();
        for path in paths {
            let mut set = &mut out;
            for (index, name) in path.iter().enumerate() {
                let entry = set.0.entry(format!("f:{name}")).or_default();
                entry.is_member |= index + 1 == path.len();
                set = &mut entry.below;
            }
        }
        out
    }

    /// Reads `fieldsV1`.
    pub fn read(fields: &Value) -> Self {
        let members = fields.as_object().into_iter().flatten();
        let entries = members.filter(|(key, _)| *key != ".").map(|(key, below)| {
            let is_member = below
                .as_object()
                .is_none_or(|below| below.is_empty() || below.contains_key("."));
            let below = Self::read(below);
            (item::normal(key), Entry { is_member, below })
        });
        Self(entries.collect())
    }

    /// Writes `fieldsV1`.
    pub fn write(&self) -> Value {
        let mut out = Map::new();
        for (key, entry) in &self.0 {
            let mut below = entry.below.write();
            if let (true, Value::Object(members)) = (entry.is_member && !entry.below.is_empty(), &mut below) {
                members.insert(".".to_owned(), json!({}));
            }
            out.insert(key.clone(), below);
        }
        Value::Object(out)
    }

    /// Whether nothing is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut out = self.clone();
        for (key, theirs) in &other.0 {
            let ours = out.0.entry(key.clone()).or_default();
            ours.is_member |= theirs.is_member;
            ours.below = ours.below.union(&theirs.below);
        }
        out
    }

    /// What is in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.map(|key, ours| {
            let theirs = other.0.get(key)?;
            Some(Entry {
                is_member: ours.is_member && theirs.is_member,
                below: ours.below.intersection(&theirs.below),
            })
        })
    }

    /// What is in this set only.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.map(|key, ours| {
            Some(match other.0.get(key) {
                None => ours.clone(),
                Some(theirs) => Entry {
                    is_member: ours.is_member && !theirs.is_member,
                    below: ours.below.difference(&theirs.below),
                },
            })
        })
    }

    /// What is in this set, but for the members of the other and all below them.
    #[must_use]
    pub fn outside(&self, other: &Self) -> Self {
        self.map(|key, ours| match other.0.get(key) {
            None => Some(ours.clone()),
            Some(theirs) if theirs.is_member => None,
            Some(theirs) => Some(Entry {
                is_member: ours.is_member,
                below: ours.below.outside(&theirs.below),
            }),
        })
    }

    fn map(&self, change: impl Fn(&str, &Entry) -> Option<Entry>) -> Self {
        let entries = self.0.iter();
        let entries = entries.filter_map(|(key, entry)| Some((key.clone(), change(key, entry)?)));
        Self(entries.filter(|(_, entry)| !entry.is_empty()).collect())
    }

    /// All fields, as messages spell them: `.spec.containers[name="main"].image`.
    pub fn paths(&self) -> Vec<String> {
        let mut out = Vec::new();
        self.add_paths("", &mut out);
        out
    }

    fn add_paths(&self, above: &str, out: &mut Vec<String>) {
        let members = self.0.iter().filter(|(_, entry)| entry.is_member);
        out.extend(members.map(|(key, _)| format!("{above}{}", item::shown(key))));
        for (key, entry) in &self.0 {
            entry
                .below
                .add_paths(&format!("{above}{}", item::shown(key)), out);
        }
    }

    /// Adds what is known of a field.
    pub(super) fn put(&mut self, key: String, is_member: bool, below: Self) {
        let entry = Entry { is_member, below };
        if !entry.is_empty() {
            self.0.insert(key, entry);
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.0.get(key).is_some_and(|entry| entry.is_member)
    }

    pub(super) fn below(&self, key: &str) -> Option<&Self> {
        self.0
            .get(key)
            .map(|entry| &entry.below)
            .filter(|below| !below.is_empty())
    }
}

/// All fields that an object sets: leaves, items of lists, and members of maps.
pub fn fields(shape: Shape<'_>, value: &Value) -> FieldSet {
    let (_, set) = collect(shape, value);
    set
}

/// Whether the value is itself a field, and the fields below it.
fn collect(shape: Shape<'_>, value: &Value) -> (bool, FieldSet) {
    let mut out = FieldSet::default();
    match (shape.atom(Some(value)), value) {
        (Atom::Members(of), Value::Object(members)) => {
            for (name, member) in members {
                let (child, is_named) = of.child(name);
                let (is_leaf, below) = collect(child, member);
                let is_bare = member.is_null() || member.as_object().is_some_and(Map::is_empty);
                out.put(format!("f:{name}"), is_leaf || is_bare || !is_named, below);
            }
            (false, out)
        }
        (Atom::Items(of), Value::Array(items)) => {
            let keys: Vec<Option<String>> = items.iter().map(|one| of.key(one).ok()).collect();
            for (key, one) in keys.iter().zip(items) {
                let Some(key) = key else {
                    continue;
                };
                let is_repeated = keys.iter().flatten().filter(|other| *other == key).count() > 1;
                let below = if is_repeated {
                    FieldSet::default()
                } else {
                    collect(of.shape(), one).1
                };
                out.put(key.clone(), true, below);
            }
            (false, out)
        }
        (Atom::Leaf, _) => (true, out),
        _ => (false, out),
    }
}

/// The set with the fields of structs above its members: they go with all that is in them, which maps do not.
#[must_use]
pub fn with_named(shape: Shape<'_>, set: &FieldSet) -> FieldSet {
    let mut out = FieldSet::default();
    for (key, entry) in &set.0 {
        let (child, is_named) = match (key.strip_prefix("f:"), shape.atom(None)) {
            (Some(name), Atom::Members(of)) => of.child(name),
            (None, Atom::Items(of)) if key.starts_with("k:") => (of.shape(), false),
            _ => (Shape::UNKNOWN, false),
        };
        let is_member = entry.is_member || is_named && !entry.below.is_empty();
        out.put(key.clone(), is_member, with_named(child, &entry.below));
    }
    out
}
