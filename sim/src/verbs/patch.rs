//! Patch: the object is read, patched, and goes the way of an update.

use kube_schema::patch::{self, PatchError};
use kube_schema::table::Table;
use kube_schema::validate::{FieldError, Kind};
use serde_json::Value;

use super::{body, create, find, update};
use crate::api::{Api, Call, Reply};
use crate::registry::Schema;
use crate::status::{Failure, Subject};

const TYPED: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/apply-patch+cbor",
];
const CUSTOM: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
    "application/apply-patch+cbor",
];

pub(super) fn patch(api: &mut Api, call: &mut Call<'_>) -> Result<Reply, Failure> {
    let (old, mut new) = patched(api, call)?;
    create::place(call, &mut new)?;
    update::replace(api, call, &old, new)
}

/// The object as it is, and as the patch makes it.
pub(super) fn patched(api: &Api, call: &mut Call<'_>) -> Result<(Value, Value), Failure> {
    let media = call
        .request
        .content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_owned();
    let supported = if call.resource.is_custom() { CUSTOM } else { TYPED };
    if !supported.contains(&media.as_str()) || media.starts_with("application/apply-patch") {
        return Err(Failure::unsupported_media_type(supported));
    }
    let old = call.read(find(api, call)?);
    let mut new = old.clone();
    apply(call, &media, &mut new)?;
    let text = new.to_string();
    let new = body::shape(call, new, |_, _, why| {
        let error = FieldError {
            path: "patch".into(),
            kind: Kind::Invalid,
            value: text.clone().into(),
            detail: why.to_owned(),
        };
        Failure::invalid(&Subject::new("", ""), "", &[error])
    })?;
    Ok((old, new))
}

fn apply(call: &Call<'_>, media: &str, object: &mut Value) -> Result<(), Failure> {
    let body: Value = serde_json::from_slice(&call.request.body)
        .map_err(|error| Failure::bad_request(format!("error decoding patch: {error}")))?;
    let result = match (media, &call.version.schema) {
        ("application/json-patch+json", _) => {
            if !body.is_array() {
                let why = "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp";
                return Err(Failure::bad_request(why));
            }
            patch::json(object, &body)
        }
        ("application/strategic-merge-patch+json", Schema::Typed(of)) => {
            patch::strategic(Table::builtin(), *of, object, body)
        }
        _ => {
            if !body.is_object() {
                let why = "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}";
                return Err(Failure::bad_request(why));
            }
            patch::merge(object, body);
            Ok(())
        }
    };
    result.map_err(|error| match error {
        PatchError::Malformed(why) => Failure::bad_request(why),
        PatchError::Inapplicable(_) => Failure::unprocessable(),
        PatchError::Unsupported(why) => Failure::unknown(&why),
    })
}
