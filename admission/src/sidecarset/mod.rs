//! Admission of SidecarSets, in whatever version they are written.

mod defaults;
pub mod mutate;
pub mod validate;

use serde_json::Value;

use crate::{Answer, Request};

/// Fills in defaults and the hashes of the containers, as the webhook does.
pub fn complete(set: &mut Value) {
    defaults::apply(set);
    mutate::stamp(set);
}

/// The answer to a request about something else than a SidecarSet that can be read.
fn known(request: &Request) -> Result<(), Answer> {
    let (kind, version) = (request.kind.as_str(), request.version.as_str());
    if kind != "SidecarSet" || !["v1alpha1", "v1beta1"].contains(&version) {
        return Err(Answer::undecodable(format_args!("{version} {kind} is not known")));
    }
    request.specified()
}

/// The items of a list in an object; none if it is absent or something else.
fn items<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    let list = object.get(name).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

/// A string; empty if absent.
fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}
