//! Everything that is stored, as text, and back.
//!
//! One JSON object a line: first what the text is and what the server itself remembers, then the objects, definitions
//! before the objects that they define. History is not kept: a watch from before a restart ends with 410, as after a
//! compaction. Reading checks every line; a text that was cut short or belongs to a later version is refused.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::{Api, Config};
use crate::crd;
use crate::entropy::Entropy;
use crate::object::{self, metadata_text};
use crate::store::{Head, Key, ResourceId};

/// The format that the first line names.
const FORMAT: &str = "kruise-sim snapshot";
/// The only version there is so far.
const VERSION: u32 = 1;
/// Revisions are signed numbers to those who store them.
const LAST_REVISION: u64 = i64::MAX as u64;
/// The resource whose objects define others.
const DEFINITIONS: &str = "customresourcedefinitions";

/// A text that is no snapshot, or not one that this build reads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The first line is not that of a snapshot: another file was meant.
    #[error("not a snapshot: the first line must be a JSON object with \"format\": \"{FORMAT}\"")]
    Format,
    /// Written by a newer build: use that one.
    #[error("version {0} of snapshots is not known; this build reads version {VERSION}")]
    Version(u32),
    /// Cut short, or edited.
    #[error("the snapshot is incomplete: {expected} objects were written, {found} are there")]
    Incomplete {
        /// By the first line.
        expected: usize,
        /// As there are.
        found: usize,
    },
    /// A line that cannot be taken.
    #[error("line {line}: {why}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
}

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    format: String,
    version: u32,
    /// The newest revision.
    revision: u64,
    /// The state of the sequence of uids and names.
    entropy: u64,
    /// Service addresses handed out.
    addresses: u32,
    /// Lines that follow.
    objects: usize,
}

/// One of the others.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    group: String,
    resource: String,
    object: Value,
}

impl Api {
    /// Everything that is stored, one JSON object a line.
    pub fn snapshot(&self) -> String {
        let header = Header {
            format: FORMAT.to_owned(),
            version: VERSION,
            revision: self.store.revision(),
            entropy: self.entropy.state(),
            addresses: self.addresses,
            objects: self.store.collections().map(|(_, objects)| objects.len()).sum(),
        };
        let mut text = String::new();
        push(&mut text, &header);
        let is_definition = |id: &ResourceId| id.plural.as_ref() == DEFINITIONS;
        for definitions in [true, false] {
            let collections = self.store.collections();
            for (id, collection) in collections.filter(|(id, _)| is_definition(id) == definitions) {
                for (_, stored) in collection.range("", None) {
                    let line = Line {
                        group: id.group.to_string(),
                        resource: id.plural.to_string(),
                        object: Arc::unwrap_or_clone(stored.value()),
                    };
                    push(&mut text, &line);
                }
            }
        }
        text
    }

    /// A server that continues where another one was when its snapshot was taken. Of the configuration only the window
    /// counts: the sequence of uids continues too.
    ///
    /// # Errors
    /// The text is no snapshot of this version, or was damaged.
    pub fn restore(config: &Config, snapshot: &str) -> Result<Self, SnapshotError> {
        let mut lines = snapshot.lines();
        let first = lines.next().unwrap_or_default();
        let header = header(first)?;
        let found = lines.clone().count();
        if found != header.objects {
            return Err(SnapshotError::Incomplete {
                expected: header.objects,
                found,
            });
        }
        let mut api = Self::empty(config);
        api.entropy = Entropy::new(header.entropy);
        api.addresses = header.addresses;
        for (index, line) in lines.enumerate() {
            let taken = api.take(line, header.revision);
            taken.map_err(|why| SnapshotError::Line { line: index + 2, why })?;
        }
        let resources = api.registry.all().map(|row| row.id.clone());
        api.store.begin_at(header.revision, resources);
        Ok(api)
    }

    /// Takes the object of a line.
    fn take(&mut self, line: &str, newest: u64) -> Result<(), String> {
        let Line {
            group,
            resource,
            object,
        } = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let Some(row) = self.registry.get(&group, &resource).cloned() else {
            return Err(format!(
                "{resource} of group {group:?} are not known, or their definition does not come before them"
            ));
        };
        let expected = (row.api_version(&row.storage), row.kind.to_string());
        let named = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
        if (named("apiVersion"), named("kind")) != (expected.0.as_str(), expected.1.as_str()) {
            return Err(format!("the object must be a {} of {}", expected.1, expected.0));
        }
        let version = row.version(&row.storage).ok_or("its stored version is unknown")?;
        object::shape(object.clone(), version).map_err(|error| error.text)?;
        let key = Key::new(
            metadata_text(&object, "namespace"),
            metadata_text(&object, "name"),
        );
        if key.name.is_empty() || key.namespace.is_empty() == row.is_namespaced() {
            return Err("metadata.name or metadata.namespace is missing or not wanted".to_owned());
        }
        let uid = metadata_text(&object, "uid");
        if uid.is_empty() || self.store.has_uid(uid) || self.store.get(&row.id, &key).is_some() {
            return Err("metadata.uid is missing, or the object is there twice".to_owned());
        }
        let revision = metadata_text(&object, "resourceVersion").parse::<u64>();
        let Some(revision) = revision.ok().filter(|revision| *revision <= newest) else {
            return Err(format!(
                "metadata.resourceVersion must be a number up to {newest}"
            ));
        };
        if resource == DEFINITIONS {
            let defined = crd::resource(&object).ok_or("the definition defines nothing")?;
            self.registry.insert(defined);
        }
        let head = Head::of(&object, row.traits.fields.iter().map(|field| field.pointer));
        self.store
            .take(&row.id, key, head, object.to_string().into_bytes(), revision);
        Ok(())
    }
}

fn header(line: &str) -> Result<Header, SnapshotError> {
    let value: Value = serde_json::from_str(line).map_err(|_| SnapshotError::Format)?;
    if value.get("format").and_then(Value::as_str) != Some(FORMAT) {
        return Err(SnapshotError::Format);
    }
    let version = value.get("version").and_then(Value::as_u64).unwrap_or_default() as u32;
    if version != VERSION {
        return Err(SnapshotError::Version(version));
    }
    let refuse = |why: String| SnapshotError::Line { line: 1, why };
    let header: Header = serde_json::from_value(value).map_err(|error| refuse(error.to_string()))?;
    if header.revision > LAST_REVISION {
        return Err(refuse(format!("revision must be a number up to {LAST_REVISION}")));
    }
    Ok(header)
}

/// Adds a line. Neither kind of line can fail to be written: their members are texts, numbers and JSON.
fn push(text: &mut String, line: &impl Serialize) {
    text.push_str(&serde_json::to_string(line).unwrap_or_default());
    text.push('\n');
}

#[cfg(test)]
mod tests;
