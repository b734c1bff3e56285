//! Where the fields stand in each version. Errors name the field that the client wrote, so rules read the request's
//! own version instead of a converted object.

use serde_json::Value;

use crate::{Answer, Request};

/// Version of the API a CloneSet is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V1alpha1,
    V1beta1,
}

impl Version {
    /// The version of a request about CloneSets; the answer to give to any other.
    pub(super) fn of(request: &Request) -> Result<Self, Answer> {
        match (request.kind.as_str(), request.version.as_str()) {
            ("CloneSet", "v1alpha1") => Ok(Self::V1alpha1),
            ("CloneSet", "v1beta1") => Ok(Self::V1beta1),
            (kind, version) => Err(Answer::undecodable(format_args!("{version} {kind} is not known"))),
        }
    }

    /// Where partition, surge and their like are.
    pub(super) fn strategy_path(self) -> &'static str {
        match self {
            Self::V1alpha1 => "spec.updateStrategy",
            Self::V1beta1 => "spec.updateStrategy.rollingUpdate",
        }
    }

    /// What [`Self::strategy_path`] names, if it is there.
    pub(super) fn strategy(self, spec: &Value) -> Option<&Value> {
        let update = member(spec, "updateStrategy")?;
        match self {
            Self::V1alpha1 => Some(update),
            Self::V1beta1 => member(update, "rollingUpdate"),
        }
    }

    /// Whether pods change in place: `ReCreate`, `InPlaceIfPossible` or `InPlaceOnly`; empty if not set. In `v1alpha1`
    /// it may also be `OnDelete`.
    pub(super) fn policy(self, spec: &Value) -> &str {
        let field = match self {
            Self::V1alpha1 => "type",
            Self::V1beta1 => "podUpdatePolicy",
        };
        self.strategy(spec)
            .map(|strategy| text(strategy, field))
            .unwrap_or_default()
    }
}

/// A member that is an object.
pub(super) fn member<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|value| value.is_object())
}

/// A string; empty if absent.
pub(super) fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The items of a list; none if absent.
pub(super) fn items<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    object
        .get(name)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// A member that is set: not `null`.
pub(super) fn present<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|value| !value.is_null())
}
