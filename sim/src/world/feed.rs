//! What changed in a resource since an actor last read it.
//!
//! A feed reads the history that watches read. Where history was compacted it compares what it knew with what there
//! is, so that what vanished meanwhile is reported too.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::api::Api;
use crate::store::{Head, Key, ResourceId};

/// A cursor into one resource's history.
#[derive(Clone, Debug)]
pub(crate) struct Feed {
    id: ResourceId,
    cursor: u64,
    known: BTreeSet<Key>,
}

impl Feed {
    /// Starts before everything: the first poll reports all objects.
    pub(crate) fn new(group: &str, plural: &str) -> Self {
        Self {
            id: ResourceId {
                group: group.into(),
                plural: plural.into(),
            },
            cursor: 0,
            known: BTreeSet::new(),
        }
    }

    /// Starts over: the next poll reports all objects again.
    pub(crate) fn rewind(&mut self) {
        self.cursor = 0;
    }

    /// Keys of objects that changed, came or went, each once, in order.
    pub(crate) fn poll(&mut self, api: &Api) -> BTreeSet<Key> {
        let mut changed = BTreeSet::new();
        let Some(collection) = api.store.collection(&self.id) else {
            return std::mem::take(&mut self.known);
        };
        let history = if self.cursor == 0 {
            None
        } else {
            collection.log.after(self.cursor)
        };
        if let Some(changes) = history {
            for change in changes {
                if change.deleted {
                    self.known.remove(&change.key);
                } else {
                    self.known.insert(change.key.clone());
                }
                changed.insert(change.key.clone());
            }
        } else {
            changed.append(&mut self.known);
            self.known = collection.range("", None).map(|(key, _)| key.clone()).collect();
            changed.extend(self.known.iter().cloned());
        }
        self.cursor = api.store.revision();
        changed
    }

    /// The object as it is now.
    pub(crate) fn object(&self, api: &Api, key: &Key) -> Option<Arc<Value>> {
        Some(api.store.get(&self.id, key)?.value())
    }

    /// What is known of the object without reading it.
    pub(crate) fn head<'a>(&self, api: &'a Api, key: &Key) -> Option<&'a Head> {
        api.store.get(&self.id, key).map(|stored| &stored.head)
    }

    /// The value of one of the resource's selectable fields.
    pub(crate) fn field<'a>(&self, api: &Api, head: &'a Head, name: &str) -> Option<&'a str> {
        let resource = api.registry.by_id(&self.id)?;
        let at = resource
            .traits
            .fields
            .iter()
            .position(|field| field.name == name)?;
        head.fields.get(at).map(AsRef::as_ref)
    }
}
