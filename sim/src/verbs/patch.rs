//! Patch: the object is read, patched, and then updated.

use std::sync::Arc;

use kube_schema::patch::{self, PatchError};
use kube_schema::table::Table;
use kube_schema::validate::{FieldError, Kind};
use serde_json::Value;

use super::found::find;
use super::{Touched, body, create, progress, update};
use crate::api::{Api, Call, Reply};
use crate::json_error::go_error;
use crate::managed;
use crate::registry::{Resource, Schema};
use crate::status::{Failure, Subject};
use crate::webhook::Stop;
use crate::wire;

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
];

/// The types of the patches that are carried out on a resource.
pub(crate) fn media(resource: &Resource) -> impl Iterator<Item = &'static str> {
    let known = if resource.is_custom() { CUSTOM } else { TYPED };
    let known = known.iter().copied();
    known.filter(|media| *media != "application/apply-patch+cbor")
}

pub(super) fn patch(api: &mut Api, call: &mut Call<'_>) -> Result<Reply, Stop> {
    if let Some(progress) = progress::resumed(api, call) {
        return update::go_on(api, call, progress);
    }
    if call.request.media_type() == managed::APPLY {
        return applied(api, call);
    }
    let (old, mut new) = patched(api, call)?;
    create::place(call, &mut new)?;
    if crate::object::metadata_text(&new, "name").is_empty() {
        let name = &call.target.name;
        let why =
            format!("the name of the object ({name} based on URL) was undeterminable: name must be provided");
        return Err(Failure::bad_request(why).into());
    }
    update::check_name(call, &new)?;
    update::replace(api, call, &old, new)
}

/// Applies an object: it is created if it is not there.
fn applied(api: &mut Api, call: &mut Call<'_>) -> Result<Reply, Stop> {
    check_media(call)?;
    let stored = find(api, call);
    if !call.target.subresource.is_empty() {
        stored.as_ref().map_err(Clone::clone)?;
    }
    let old = stored.ok().map(|stored| call.read(stored)).transpose()?;
    let new = managed::apply(call, old.as_ref())?;
    let mut new = body::shape(call, new, |_, why, _| Failure::unknown(why))?;
    create::place(call, &mut new)?;
    update::check_name(call, &new)?;
    if let Some(old) = old {
        return update::replace(api, call, &old, new);
    }
    let value = create::insert(api, call, new)?;
    Ok(Reply { code: 201, value })
}

/// The object as it is, and as the patch makes it.
pub(super) fn patched(api: &Api, call: &mut Call<'_>) -> Result<(Arc<Value>, Value), Stop> {
    let request = call.request;
    let media = request.media_type();
    check_media(call)?;
    let old = call.read(find(api, call)?)?;
    let mut new = Value::clone(&old);
    call.touched = apply(call, media, &mut new)?;
    check_kind(call, &new)?;
    let strategic = media == "application/strategic-merge-patch+json";
    let new = body::shape(call, new, |call, why, conversion| {
        let error = FieldError {
            path: "patch".into(),
            kind: Kind::Invalid,
            value: if strategic {
                patch::go_value(&serde_json::from_slice(&request.body).unwrap_or_default())
            } else {
                // the patch applied once already
                let mut unshaped = Value::clone(&old);
                let _ = apply(call, media, &mut unshaped);
                unshaped.to_string()
            }
            .into(),
            detail: if strategic { conversion } else { why }.to_owned(),
        };
        Failure::invalid(&Subject::new("", ""), "", &[error])
    })?;
    Ok((old, new))
}

/// Which kinds of patch a resource takes.
pub(super) fn check_media(call: &Call<'_>) -> Result<(), Failure> {
    let media = call.request.media_type();
    let supported = if call.resource.is_custom() { CUSTOM } else { TYPED };
    if !TYPED.contains(&media) && !call.resource.is_custom() {
        return Err(Failure::media_type_unknown());
    }
    let is_served = media != "application/apply-patch+cbor"
        && (media != managed::APPLY || call.target.subresource != "scale");
    if !supported.contains(&media) || !is_served {
        return Err(Failure::unsupported_media_type(supported));
    }
    Ok(())
}

/// A strategic merge patch cannot reach the kind.
fn keep_kind(call: &Call<'_>, object: &mut Value) {
    if let Value::Object(members) = object {
        members.insert("apiVersion".into(), call.api_version().into());
        members.insert("kind".into(), call.resource.kind.as_ref().into());
    }
}

/// A patch may not make another kind of an object.
fn check_kind(call: &Call<'_>, new: &Value) -> Result<(), Failure> {
    let (version, kind) = (member(new, "apiVersion"), member(new, "kind"));
    if version == call.api_version() && kind == call.resource.kind.as_ref() {
        return Ok(());
    }
    let error = FieldError {
        path: "patch".into(),
        kind: Kind::Invalid,
        value: new.to_string().into(),
        detail: crate::object::unregistered(kind, version),
    };
    Err(Failure::invalid(&Subject::new("", ""), "", &[error]))
}

fn member<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A patch that is not JSON.
pub(super) fn malformed(body: &[u8]) -> Failure {
    Failure::bad_request(format!("error decoding patch: {}", go_error(body)))
}

/// Applies the patch; returns what it may have changed.
fn apply(call: &Call<'_>, media: &str, object: &mut Value) -> Result<Touched, Failure> {
    let body = wire::parse(&call.request.body).map_err(|_| malformed(&call.request.body))?;
    let touched = match media {
        "application/json-patch+json" => Touched::by_operations(&body),
        _ => Touched::by_merge(&body),
    };
    let result = match (media, &call.version.schema) {
        ("application/json-patch+json", _) => {
            if !body.is_array() {
                let why = "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp";
                return Err(Failure::bad_request(why));
            }
            patch::json(object, &body)
        }
        ("application/strategic-merge-patch+json", Schema::Typed(of)) => {
            if body.is_array() {
                let why = "json: cannot unmarshal array into Go value of type map[string]interface {}";
                return Err(Failure::bad_request(why));
            }
            patch::strategic(Table::builtin(), *of, object.take(), body).map(|merged| {
                *object = merged;
                keep_kind(call, object);
            })
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
    result.map(|()| touched).map_err(|error| match error {
        PatchError::Malformed(why) => Failure::bad_request(why),
        PatchError::Inapplicable(_) => Failure::unprocessable(),
        PatchError::Unsupported(why) => Failure::unknown(&why),
    })
}
