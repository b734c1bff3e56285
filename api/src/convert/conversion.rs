//! The two versions, and how a kind says that they are converted.

use serde_json::Value;

use super::rule::{Direction, Rule};

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
    /// A function that converts in a direction, and keeps by itself what would be lost.
    Own(fn(&mut Value, Direction)),
}

impl Conversion {
    /// Does the API server need the conversion webhook?
    pub fn needs_webhook(&self) -> bool {
        matches!(self, Self::Rules(_) | Self::Own(_))
    }
}
