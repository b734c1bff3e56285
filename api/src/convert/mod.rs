//! Conversion between the served versions of every kind, on raw JSON: members that no rule names stay where they are.
//!
//! A kind says by [`Rule`]s what changes between its two versions. Rules alone may lose something, so each conversion
//! is tried back at once, and what would come back differently is kept in one annotation,
//! [`names::CONVERSION_DATA`](crate::names::CONVERSION_DATA), with the value it would have come back with. On the way
//! back what was kept returns wherever that value is still there; where it is not, somebody has edited the object in
//! the meantime, and the edit wins. So a round trip is lossless whatever the object says, and the annotation is only
//! there when rules alone would lose.

mod kept;
pub(crate) mod path;
mod rule;

use serde_json::{Value, json};

pub use rule::{Direction, Rule};

use crate::definition::Kind;

/// The older version of a kind with two.
pub const OLDER: &str = "v1alpha1";
/// The hub: the newer version.
pub const NEWER: &str = "v1beta1";

/// How versions of a kind are converted.
pub enum Conversion {
    /// There is one version only.
    OneVersion,
    /// Both versions have the same fields: only `apiVersion` changes, which a server does by itself.
    Same,
    /// Rules from `v1alpha1` to `v1beta1` and back.
    Rules(&'static [Rule]),
    /// A function to the version of the direction, which keeps by itself what would be lost.
    Own(fn(&mut Value, Direction)),
}

impl Conversion {
    /// Does a server need the webhook for it?
    pub fn needs_webhook(&self) -> bool {
        matches!(self, Self::Rules(_) | Self::Own(_))
    }
}

/// An object that cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// The kind is not one of ours, or not in this group.
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

/// Turns an object into the wanted version, `group/version`. Unchanged if it has that version already.
pub fn convert(object: &mut Value, wanted: &str) -> Result<(), ConvertError> {
    let text = |name: &str| {
        object
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (version, name) = (text("apiVersion"), text("kind"));
    let group = version.split_once('/').map_or("", |(group, _)| group);
    match crate::kinds::find(group, &name) {
        Some(kind) => convert_as(kind, object, wanted),
        None => Err(ConvertError::Kind { version, kind: name }),
    }
}

/// As [`convert`], of an object of which it is known what it is, whatever it says itself.
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
/// cannot express is left out: a status is written anew by whoever reports it, so nothing is kept for a way back.
pub fn convert_status(kind: &Kind, status: Value, version: &str) -> Value {
    if version != OLDER {
        return status;
    }
    let mut object = json!({"apiVersion": format!("{}/{NEWER}", kind.group), "status": status});
    match &kind.conversion {
        Conversion::OneVersion | Conversion::Same => {}
        Conversion::Rules(rules) => kept::apply(&mut object, rules, Direction::Older),
        Conversion::Own(function) => function(&mut object, Direction::Older),
    }
    path::take(&mut object, &["status"]).unwrap_or_default()
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
