//! The only place where verbs change the store.

use std::sync::Arc;

use kube_schema::table::Table;
use kube_schema::{protobuf, typed};
use serde_json::Value;

use crate::admission;
use crate::api::{Api, Call, Purpose};
use crate::conversion;
use crate::object::set_metadata;
use crate::registry::{Resource, Schema};
use crate::store::{Head, Key};
use crate::webhook::Stop;

/// Stores an object and returns it as the request's version reads it. A dry run only returns it.
pub(super) fn put(api: &mut Api, call: &Call<'_>, key: Key, object: Value) -> Result<Arc<Value>, Stop> {
    let mut forms = Forms::of(call, object)?;
    if call.dry_run || call.purpose == Purpose::Rehearsal {
        return Ok(Arc::new(forms.shown));
    }
    // definitions are stored as JSON
    if let Schema::Typed(of) = call.version.schema
        && protobuf::is_supported(Table::builtin(), of)
    {
        typed::stored(Table::builtin(), of, &mut forms.shown);
    }
    forms.stamp(api.store.next_revision());
    let (shown, stored) = forms.shared();
    write(api, &call.resource, key, &stored);
    if call.resource.id.plural.as_ref() == "customresourcedefinitions" {
        api.definition_changed(&shown, call.now);
    }
    Ok(shown)
}

/// Removes an object; returns its last state.
pub(super) fn remove(api: &mut Api, call: &Call<'_>, key: &Key, object: Value) -> Result<Arc<Value>, Stop> {
    let mut forms = Forms::of(call, object)?;
    if call.dry_run || call.purpose == Purpose::Rehearsal {
        return Ok(Arc::new(forms.shown));
    }
    forms.stamp(api.store.next_revision());
    let (shown, stored) = forms.shared();
    api.store.remove(&call.resource.id, key, &stored);
    note_webhooks(api, &call.resource);
    if call.resource.id.plural.as_ref() == "customresourcedefinitions" {
        api.definition_removed(&shown);
    }
    Ok(shown)
}

/// An object as it is answered and as it is stored.
struct Forms {
    shown: Value,
    /// Absent if it is the same.
    stored: Option<Value>,
}

impl Forms {
    fn of(call: &Call<'_>, object: Value) -> Result<Self, Stop> {
        if call.version.name == call.resource.storage {
            let (shown, stored) = (object, None);
            return Ok(Self { shown, stored });
        }
        let stored = conversion::one(call, object, &call.resource.storage)?;
        // the answer is what the next read in this version will be
        let shown = conversion::one(call, stored.clone(), &call.version.name)?;
        let stored = Some(stored);
        Ok(Self { shown, stored })
    }

    /// What is shown, and what is stored.
    fn shared(self) -> (Arc<Value>, Arc<Value>) {
        let shown = Arc::new(self.shown);
        let stored = self.stored.map_or_else(|| shown.clone(), Arc::new);
        (shown, stored)
    }

    fn stamp(&mut self, revision: u64) {
        for form in std::iter::once(&mut self.shown).chain(&mut self.stored) {
            set_metadata(form, "resourceVersion", revision.to_string().into());
        }
    }
}

/// Writes an object in its storage version, whose metadata already holds the next revision.
pub(super) fn write(api: &mut Api, resource: &Resource, key: Key, object: &Arc<Value>) {
    let head = Head::of(object, resource.traits.fields.iter().map(|field| field.pointer));
    api.store.put(&resource.id, key, head, object);
    note_webhooks(api, resource);
}

fn note_webhooks(api: &mut Api, resource: &Resource) {
    if resource.id.group.as_ref() == admission::GROUP {
        api.webhooks_changed();
    }
}
