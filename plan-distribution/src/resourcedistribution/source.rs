//! What is copied.

use kruise_plan_kit::{ResourceId, Target};
use serde_json::Value;

/// The manifest in a ResourceDistribution: a Secret or a ConfigMap.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The resource of the copies.
    pub resource: ResourceId,
    /// Their kind.
    pub kind: &'static str,
    /// Their name.
    pub name: &'a str,
    /// The manifest, as its author wrote it.
    pub(super) manifest: &'a Value,
}

impl<'a> Source<'a> {
    /// Reads a manifest.
    ///
    /// # Errors
    /// In plain words, if it is something else, or has no name.
    pub fn of(manifest: &'a Value) -> Result<Self, String> {
        let member = |pointer: &str| {
            manifest
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let (resource, kind) = match (member("/apiVersion"), member("/kind")) {
            ("v1", "Secret") => (ResourceId::SECRETS, "Secret"),
            ("v1", "ConfigMap") => (ResourceId::CONFIG_MAPS, "ConfigMap"),
            (version, kind) => {
                return Err(format!(
                    "only a Secret or a ConfigMap of v1 is distributed, not {kind:?} of {version:?}"
                ));
            }
        };
        let name = member("/metadata/name");
        if name.is_empty() {
            return Err(format!("the {kind} has no name"));
        }
        Ok(Self {
            resource,
            kind,
            name,
            manifest,
        })
    }

    /// The copy of a namespace.
    pub(super) fn target(&self, namespace: &str) -> Target {
        Target {
            resource: self.resource,
            namespace: namespace.to_owned(),
            name: self.name.to_owned(),
        }
    }
}
