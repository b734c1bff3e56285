//! Conversion between the served versions of every kind, on raw JSON: members that no rule names stay where they are.
//!
//! A kind lists the differences between its two versions as [`Rule`]s. Rules alone may lose a field. So each conversion
//! is converted back at once, and every field that would come back differently is kept in one annotation,
//! [`names::CONVERSION_DATA`](crate::names::CONVERSION_DATA), with the value that it would come back with. The
//! conversion back restores a kept field if that value is still there. If it is not, the object was edited in between,
//! and the edit wins. So a round trip loses nothing, and the annotation exists only if the rules alone would lose a
//! field.

mod conversion;
mod kept;
pub(crate) mod path;
mod rule;

use serde_json::{Value, json};

pub use conversion::{Conversion, NEWER, OLDER};
pub use rule::{Direction, Rule};

use crate::definition::Kind;

/// Is the object of the only version of its kind, which is the older one?
///
/// # Errors
/// In plain words, if it is of another version.
pub(crate) fn require_older(kind: &Kind, object: &Value) -> Result<(), String> {
    let wanted = format!("{}/{OLDER}", kind.group);
    let version = object.get("apiVersion").and_then(Value::as_str);
    let version = version.unwrap_or_default();
    if version == wanted {
        return Ok(());
    }
    Err(format!("apiVersion is {version:?}, not {wanted:?}"))
}

/// An object that cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// The kind is not one of Kruise, or not in this group.
    #[error("no conversion of {version} {kind}")]
    Kind {
        /// `apiVersion` of the object.
        version: String,
        /// `kind` of the object.
        kind: String,
    },
    /// A version that is not served, of the object or asked for.
    #[error("{kind} is not served in version {version}")]
    Version {
        /// The kind.
        kind: &'static str,
        /// The version, with its group.
        version: String,
    },
}

/// Converts an object of this kind to the newer version. Returns the `apiVersion` that it had.
///
/// # Errors
/// In plain words, if its version is not served.
pub fn convert_to_newer(kind: &Kind, object: &mut Value) -> Result<String, String> {
    let version = object.get("apiVersion").and_then(Value::as_str);
    let version = version.unwrap_or_default().to_owned();
    let newer = format!("{}/{NEWER}", kind.group);
    convert_as(kind, object, &newer).map_err(|error| error.to_string())?;
    Ok(version)
}

/// As [`kinds::convert`](crate::kinds::convert), for an object whose kind is known, whatever its `kind` member is.
///
/// # Errors
/// Fails if one of the versions is not served.
pub fn convert_as(kind: &Kind, object: &mut Value, wanted: &str) -> Result<(), ConvertError> {
    let version = object
        .get("apiVersion")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let from = served(kind, version)?;
    let to = served(kind, wanted)?;
    if from == to {
        return Ok(());
    }
    let direction = if to == NEWER {
        Direction::Newer
    } else {
        Direction::Older
    };
    match &kind.conversion {
        Conversion::OneVersion | Conversion::Same => {}
        Conversion::Rules(rules) => kept::convert(object, rules, direction),
        Conversion::Own(function) => function(object, direction),
    }
    path::set(object, &["apiVersion"], wanted.into());
    Ok(())
}

/// A status, or a merge patch of one, of the newer version as `version` (such as `v1alpha1`) has it. What that version
/// cannot express is left out. Nothing is kept for the conversion back, because the controller reports the status
/// again.
pub fn convert_status(kind: &Kind, status: Value, version: &str) -> Value {
    if version != OLDER {
        return status;
    }
    path::take(&mut older_form(kind, status), &["status"]).unwrap_or_default()
}

/// A merge patch of an object of the newest version as a server of `version` takes it: members that have another
/// name there have that name. Lists of a merge patch are whole, and so are members in them.
pub fn convert_patch(kind: &Kind, mut patch: Value, version: &str) -> Value {
    if let (OLDER, Conversion::Rules(rules)) = (version, &kind.conversion) {
        let renamed = rules.iter().rev();
        let renamed = renamed.filter(|rule| matches!(rule, Rule::Renamed { .. }));
        renamed.for_each(|rule| rule.apply(&mut patch, Direction::Older));
    }
    patch
}

/// The annotations in which `version` has what it has no field of the status for; `None` if there are none. A patch
/// of the status cannot set them: the API server takes nothing but the status from it.
pub fn status_annotations(kind: &Kind, status: &Value, version: &str) -> Option<Value> {
    // A function of its own keeps for the conversion back what rules do not.
    if version != OLDER || !matches!(kind.conversion, Conversion::Rules(_)) {
        return None;
    }
    path::take(
        &mut older_form(kind, status.clone()),
        &["metadata", "annotations"],
    )
}

/// An object of the older version with nothing but this status of the newer one.
fn older_form(kind: &Kind, status: Value) -> Value {
    let mut object = json!({"apiVersion": format!("{}/{NEWER}", kind.group), "status": status});
    match &kind.conversion {
        Conversion::OneVersion | Conversion::Same => {}
        Conversion::Rules(rules) => kept::apply(&mut object, rules, Direction::Older),
        Conversion::Own(function) => function(&mut object, Direction::Older),
    }
    object
}

fn served(kind: &Kind, version: &str) -> Result<&'static str, ConvertError> {
    let unserved = || ConvertError::Version {
        kind: kind.kind,
        version: version.to_owned(),
    };
    let (group, version) = version.split_once('/').ok_or_else(unserved)?;
    let name = match version {
        OLDER => OLDER,
        NEWER => NEWER,
        _ => return Err(unserved()),
    };
    let stored_alone = matches!(kind.conversion, Conversion::OneVersion) && name == NEWER;
    if group != kind.group || stored_alone {
        return Err(unserved());
    }
    Ok(name)
}

#[cfg(test)]
mod tests;
