//! The object of a request, and the answer that has none.

use serde_json::Value;

use crate::api::{Api, Call};
use crate::status::Failure;
use crate::store::Stored;

/// The object that a request names.
pub(super) fn find<'a>(api: &'a Api, call: &Call<'_>) -> Result<&'a Stored, Failure> {
    let stored = api.store.get(&call.resource.id, &call.key());
    let stored = stored.ok_or_else(|| Failure::not_found(&call.resource.subject(), &call.target.name))?;
    Ok(stored)
}

/// `Status: Success`, with or without details.
pub(super) fn success(details: Option<Value>) -> Value {
    let mut status =
        serde_json::json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"});
    if let (Value::Object(members), Some(details)) = (&mut status, details) {
        members.insert("details".into(), details);
    }
    status
}
