//! `metadata.managedFields`: who set which fields, and server-side apply, which is decided by it.
//!
//! What a write changes belongs to its manager from then on, and to nobody else. What a manager applies belongs to
//! it, too, until it no longer applies it; then it is removed, unless somebody else owns it. To apply another value
//! than somebody else set is a conflict, unless it is forced. All of that is decided before admission, so that
//! nobody owns what admission adds.
//!
//! A server notes every write ([`crate::Config::managed_fields`]). Without that, only `resize` is noted, and
//! whatever happens to an object after somebody has applied something to it.
//!
//! Entries of other versions of a custom resource are read as if they were of the version of the request.

mod apply;
mod entries;
mod last_applied;
mod owners;
#[cfg(test)]
mod tests;
mod write;

use serde_json::{Value, json};

pub(crate) use self::apply::run as apply;
use self::entries::{Managed, Owner};
use self::write::{Write, endpoint, nothing, reset, shape};
use crate::api::{Api, Call};
use crate::object::{get_metadata, seconds, set_metadata};

/// The type of a patch that is applied.
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

/// Whether a request applies an object: then its entries are written already.
fn is_apply(call: &Call<'_>) -> bool {
    call.request.media_type() == APPLY
}

/// The entries of an object that a write makes of another one, which is null if the write creates it; null for none.
pub(crate) fn noted(api: &Api, call: &Call<'_>, old: &Value, new: &Value) -> Value {
    let given = get_metadata(new, "managedFields");
    if is_apply(call) {
        return given.clone();
    }
    if is_reset(given) {
        return Value::Null;
    }
    let known = get_metadata(old, "managedFields");
    let read = |value: &Value| Managed::read(value).filter(|managed| !managed.0.is_empty());
    // a subresource does not set entries
    let given = if call.target.subresource.is_empty() {
        read(given)
    } else {
        None
    };
    let mut managed = given.or_else(|| read(known)).unwrap_or_default();
    let is_new = old.is_null();
    let is_noted = if api.managed_fields {
        is_new || !managed.0.is_empty()
    } else {
        call.target.subresource == "resize" || managed.0.keys().any(|owner| owner.subresource != "resize")
    };
    if !is_noted {
        return managed.write();
    }
    let empty;
    let old = if is_new {
        empty = nothing(call);
        &empty
    } else {
        old
    };
    let owner = Owner::updates(manager(call), &call.api_version(), endpoint(call));
    let write = Write {
        shape: shape(call),
        reset: reset(call),
        now: seconds(call.now),
    };
    owners::update(&write, (old, new), &mut managed, owner);
    managed.write()
}

/// Gives an object the entries of the one that it replaces if nothing else differs but their times.
pub(crate) fn settle(old: &Value, new: &mut Value) {
    let (before, after) = (
        get_metadata(old, "managedFields"),
        get_metadata(new, "managedFields"),
    );
    if before == after || untimed(before) != untimed(after) {
        return;
    }
    let (before, after) = (before.clone(), after.clone());
    set_metadata(new, "managedFields", before);
    if new != old {
        set_metadata(new, "managedFields", after);
    }
}

fn untimed(entries: &Value) -> Value {
    let mut entries = entries.clone();
    for entry in entries.as_array_mut().into_iter().flatten() {
        if let Value::Object(members) = entry {
            members.remove("time");
        }
    }
    entries
}

/// A request that empties the list: shaping would take an empty list for none.
pub(crate) fn keep_reset(object: &mut Value) {
    if get_metadata(object, "managedFields") == &json!([]) {
        set_metadata(object, "managedFields", json!([{}]));
    }
}

fn is_reset(entries: &Value) -> bool {
    *entries == json!([]) || *entries == json!([{}])
}

/// The manager of a write: the one in the request, or the program that sent it.
fn manager<'a>(call: &'a Call<'_>) -> &'a str {
    let program = call.request.agent.split('/').next().unwrap_or_default();
    let named = call.query.text("fieldManager");
    [named, program]
        .into_iter()
        .find(|name| !name.is_empty())
        .unwrap_or("unknown")
}
