//! Whose fields are whose after a write.

use std::collections::BTreeMap;

use kube_schema::apply::{Comparison, FieldSet, compare, fields, merge, with_named, without};
use serde_json::Value;

use super::entries::{Managed, Operation, Owned, Owner};
use super::write::Write;
use crate::object::{get_metadata, set_metadata};

/// Entries of updates that are kept; of more, the oldest become one.
const MOST_UPDATES: usize = 10;

/// A field that somebody else owns, and its value is another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Conflict {
    pub(super) owner: Owner,
    /// As messages spell it.
    pub(super) path: String,
}

/// What the server owns of each object: nobody else does.
fn of_the_server() -> FieldSet {
    FieldSet::of(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
}

fn compared(write: &Write<'_>, old: &Value, new: &Value) -> Comparison {
    let found =
        if get_metadata(old, "managedFields").is_null() && get_metadata(new, "managedFields").is_null() {
            compare(write.shape, Some(old), Some(new))
        } else {
            let [old, new] = [old, new].map(|object| {
                let mut bare = object.clone();
                set_metadata(&mut bare, "managedFields", Value::Null);
                bare
            });
            compare(write.shape, Some(&old), Some(&new))
        };
    Comparison {
        added: found.added.outside(&write.reset),
        modified: found.modified.outside(&write.reset),
        removed: found.removed.outside(&write.reset),
    }
}

/// Takes what changed from everybody but one. Returns what the others lose because it was added or modified.
fn take(managed: &mut Managed, found: &Comparison, but: Option<&Owner>) -> BTreeMap<Owner, FieldSet> {
    let changed = found.modified.union(&found.added);
    let mut lost = BTreeMap::new();
    for (owner, owned) in &mut managed.0 {
        if Some(owner) == but {
            continue;
        }
        let conflict = owned.fields.intersection(&changed);
        owned.fields = owned.fields.difference(&conflict).difference(&found.removed);
        if !conflict.is_empty() {
            lost.insert(owner.clone(), conflict);
        }
    }
    managed.tidy();
    lost
}

/// Notes an update of an object: what it changed is its manager's now.
pub(super) fn update(write: &Write<'_>, (old, new): (&Value, &Value), managed: &mut Managed, owner: Owner) {
    let found = compared(write, old, new);
    take(managed, &found, None);
    let fields = found.modified.union(&found.added);
    let fields = fields.outside(&write.reset).difference(&of_the_server());
    if !fields.is_empty() {
        let version = owner.version.clone();
        let owned = managed.0.entry(owner).or_default();
        owned.fields = owned.fields.union(&fields);
        owned.version = version;
        owned.time.clone_from(&write.now);
    }
    cap(managed);
}

/// Merges the oldest updates, so that there are not too many entries.
fn cap(managed: &mut Managed) {
    let updates = managed
        .0
        .iter()
        .filter(|(owner, _)| owner.operation == Operation::Update);
    let mut oldest: Vec<(String, Owner)> = updates
        .map(|(owner, owned)| (owned.time.clone(), owner.clone()))
        .collect();
    let mut count = oldest.len();
    oldest.sort();
    let mut first: BTreeMap<String, Owner> = BTreeMap::new();
    for (time, owner) in oldest {
        if count <= MOST_UPDATES {
            return;
        }
        let Some(version) = managed.0.get(&owner).map(|owned| owned.version.clone()) else {
            continue;
        };
        let Some(earlier) = first.get(&version) else {
            first.insert(version, owner);
            continue;
        };
        let bucket = Owner::updates("ancient-changes", &version, String::new());
        if !managed.0.contains_key(&bucket)
            && let Some(owned) = managed.0.remove(earlier)
        {
            managed.0.insert(bucket.clone(), owned);
        }
        if let Some(owned) = managed.0.remove(&owner) {
            let into = managed.0.entry(bucket).or_default();
            into.fields = into.fields.union(&owned.fields);
            into.time = time;
        }
        count -= 1;
    }
}

/// Applies an object to another one. Returns the result, or what is in conflict unless it is forced.
pub(super) fn apply(
    write: &Write<'_>,
    (live, applied): (&Value, &Value),
    managed: &mut Managed,
    (owner, version): (&Owner, &str),
    force: bool,
) -> Result<Value, Vec<Conflict>> {
    let shape = write.shape;
    let merged = merge(shape, live, applied);
    let set = fields(shape, applied).outside(&write.reset);
    let last = managed.0.get(owner).cloned().unwrap_or_default();
    let owned = Owned {
        version: version.to_owned(),
        time: last.time.clone(),
        fields: set,
    };
    managed.0.insert(owner.clone(), owned);
    let result = pruned(write, merged, managed, &last.fields);
    let lost = take(managed, &compared(write, live, &result), Some(owner));
    if !force && !lost.is_empty() {
        let conflicts = lost.into_iter().flat_map(|(owner, fields)| {
            let paths = fields.paths().into_iter();
            paths.map(move |path| Conflict {
                owner: owner.clone(),
                path,
            })
        });
        return Err(conflicts.collect());
    }
    if let Some(owned) = managed.0.get_mut(owner) {
        owned.fields = owned.fields.difference(&of_the_server());
        if result != *live {
            owned.time.clone_from(&write.now);
        }
    }
    managed.tidy();
    Ok(result)
}

/// The merged object without what its manager applied the last time and nobody owns now.
fn pruned(write: &Write<'_>, merged: Value, managed: &Managed, last: &FieldSet) -> Value {
    if last.is_empty() {
        return merged;
    }
    let shape = write.shape;
    let last = with_named(shape, last);
    let left = without(shape, &merged, &last);
    let all = with_named(shape, &fields(shape, &merged));
    // what somebody owns comes back
    let owned = managed
        .0
        .values()
        .fold(FieldSet::default(), |all, one| all.union(&one.fields));
    let kept = with_named(shape, &fields(shape, &left)).union(&with_named(shape, &owned));
    let left = without(shape, &merged, &all.difference(&kept));
    // and so does what the manager never applied
    let left = with_named(shape, &fields(shape, &left));
    without(shape, &merged, &all.difference(&left).intersection(&last))
}
