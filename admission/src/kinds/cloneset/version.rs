//! Where the fields stand in each version. Errors name the field that the client wrote, so rules read the request's
//! own version instead of a converted object.

use kruise_api::convert::OLDER;
use serde_json::Value;

use crate::json::{member, text};
use crate::kinds::Scope;

/// Version of the API a CloneSet is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V1alpha1,
    V1beta1,
}

impl Version {
    /// The version of a review.
    pub(super) fn of(scope: &Scope<'_>) -> Self {
        match scope.version {
            OLDER => Self::V1alpha1,
            _ => Self::V1beta1,
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
