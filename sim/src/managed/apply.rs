//! A request that applies an object: it is merged into the stored one, or created, and then written like any other.

use std::sync::Arc;

use kube_schema::apply::faults;
use kube_schema::validate::Errors;
use serde_json::{Value, json};

use super::entries::{Managed, Owner};
use super::last_applied;
use super::owners::{self, Conflict};
use super::write::{Write, bare, endpoint, nothing, reset, shape};
use crate::api::Call;
use crate::object::{get_metadata, metadata_text, seconds, set_metadata};
use crate::status::{Failure, Subject};
use crate::validation::text;

/// Applies the body of a request to an object as it is stored, or to none. The result has the entries that it is to
/// be stored with, and not its shape yet.
pub(crate) fn run(call: &Call<'_>, live: Option<&Arc<Value>>) -> Result<Value, Failure> {
    let manager = call.query.text("fieldManager");
    if manager.is_empty() {
        let mut errors = Errors::default();
        errors.required("fieldManager", "is required for apply patch");
        return Err(Failure::invalid(
            &Subject::new("meta.k8s.io", "PatchOptions"),
            "",
            &errors.0,
        ));
    }
    let applied = read(call)?;
    let write = Write {
        shape: shape(call),
        reset: reset(call),
        now: seconds(call.now),
    };
    let (version, endpoint) = (call.api_version(), endpoint(call));
    let by = By {
        manager,
        version: &version,
        endpoint: &endpoint,
        force: call.query.flag("force"),
    };
    let result = decide(&write, live.map(AsRef::as_ref), &nothing(call), &applied, &by);
    result.map_err(|conflicts| conflict(&conflicts))
}

/// Who applies.
pub(super) struct By<'a> {
    pub(super) manager: &'a str,
    pub(super) version: &'a str,
    /// The subresource.
    pub(super) endpoint: &'a str,
    /// Whether what others own is taken from them.
    pub(super) force: bool,
}

/// The object as it is after something was applied to it, with its entries; or what is in conflict. `nothing` is an
/// object in which nothing is set.
pub(super) fn decide(
    write: &Write<'_>,
    live: Option<&Value>,
    nothing: &Value,
    applied: &Value,
    by: &By<'_>,
) -> Result<Value, Vec<Conflict>> {
    let entries = live.map_or(&Value::Null, |live| get_metadata(live, "managedFields"));
    let mut managed = Managed::read(entries).unwrap_or_default();
    let start = live.map_or_else(|| nothing.clone(), bare);
    if managed.0.is_empty() && live.is_some() {
        let before = Owner::updates("before-first-apply", by.version, by.endpoint.to_owned());
        owners::update(write, (nothing, &start), &mut managed, before);
    }
    let owner = Owner::applies(by.manager, by.endpoint.to_owned());
    let objects = (&start, applied);
    let known = managed.clone();
    let is_kubectl = by.manager == last_applied::KUBECTL;
    let mut result = owners::apply(write, objects, &mut managed, (&owner, by.version), by.force);
    if let Err(conflicts) = &result
        && is_kubectl
    {
        let left = last_applied::left(write, &start, by.version, conflicts);
        result = if left.is_empty() {
            managed = known;
            owners::apply(write, objects, &mut managed, (&owner, by.version), true)
        } else {
            Err(left)
        };
    }
    let mut object = result?;
    if is_kubectl {
        last_applied::renew(&mut object, applied);
    }
    set_metadata(&mut object, "managedFields", managed.write());
    Ok(object)
}

/// Reads the body, which must be of the kind and have only fields of its schema.
fn read(call: &Call<'_>) -> Result<Value, Failure> {
    let body = String::from_utf8_lossy(&call.request.body);
    let mut applied: Value = serde_saphyr::from_str(&body)
        .map_err(|error| Failure::bad_request(format!("error decoding YAML: {error}")))?;
    let (version, kind) = (text(&applied, "apiVersion"), text(&applied, "kind"));
    if version != call.api_version() || kind != call.resource.kind.as_ref() {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let why = format!("invalid object type: {group}/{version}, Kind={kind}");
        return Err(Failure::bad_request(why));
    }
    if !get_metadata(&applied, "managedFields").is_null() {
        return Err(Failure::bad_request("metadata.managedFields must be nil"));
    }
    if metadata_text(&applied, "name").is_empty() {
        set_metadata(&mut applied, "name", call.target.name.as_str().into());
    }
    let faults = faults(shape(call), &applied);
    let why = match faults.as_slice() {
        [] => return Ok(applied),
        [one] => one.clone(),
        many => format!("errors:\n  {}", many.join("\n  ")),
    };
    let place = match call.target.namespace.as_str() {
        "" => format!("/{}", call.target.name),
        namespace => format!("{namespace}/{}", call.target.name),
    };
    let version = call.api_version();
    let version = if version.contains('/') {
        version
    } else {
        format!("/{version}")
    };
    let kind = call.resource.kind.as_ref();
    Err(Failure::unknown(&format!(
        "failed to create typed patch object ({place}; {version}, Kind={kind}): {why}"
    )))
}

/// The refusal of what others own.
pub(super) fn conflict(conflicts: &[Conflict]) -> Failure {
    let causes: Vec<Value> = conflicts
        .iter()
        .map(|one| {
            json!({
                "reason": "FieldManagerConflict", "message": format!("conflict with {}", one.owner.shown()),
                "field": one.path,
            })
        })
        .collect();
    let message = match conflicts {
        [one] => format!(
            "Apply failed with 1 conflict: conflict with {}: {}",
            one.owner.shown(),
            one.path
        ),
        many => {
            let mut lines = Vec::new();
            for (index, one) in many.iter().enumerate() {
                if index == 0
                    || many
                        .get(index - 1)
                        .is_some_and(|before| before.owner != one.owner)
                {
                    lines.push(format!("conflicts with {}:", one.owner.shown()));
                }
                lines.push(format!("- {}", one.path));
            }
            format!("Apply failed with {} conflicts: {}", many.len(), lines.join("\n"))
        }
    };
    Failure::denied(409, "Conflict", message, Some(json!({"causes": causes})))
}
