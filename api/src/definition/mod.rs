//! A kind as data, and its CustomResourceDefinition.

pub mod columns;
mod moved;

use serde_json::{Value, json};

pub use moved::Moved;

use crate::convert::Conversion;
use crate::rules;
use crate::schema::{Object, string, with};

/// A kind that is served.
pub struct Kind {
    /// API group, such as `apps.kruise.io`.
    pub group: &'static str,
    /// Name of the kind, such as `SidecarSet`.
    pub kind: &'static str,
    /// Name in paths, such as `sidecarsets`.
    pub plural: &'static str,
    /// Short names for clients.
    pub short_names: &'static [&'static str],
    /// Where its objects live.
    pub scope: Scope,
    /// Help on the kind as a whole.
    pub about: &'static str,
    /// Its served versions, oldest first.
    pub versions: fn() -> Vec<Version>,
    /// How its versions are converted.
    pub conversion: Conversion,
}

/// Where objects live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In a namespace.
    Namespaced,
    /// Cluster-scoped.
    Cluster,
}

/// One served version.
pub struct Version {
    /// Name, such as `v1beta1`.
    pub name: &'static str,
    /// Is it the storage version? Exactly one version of a kind is.
    pub storage: bool,
    /// Schema of the desired state.
    pub spec: Value,
    /// Schema of the reported state.
    pub status: Value,
    /// Is there a scale subresource, on `replicas` of both states?
    pub scale: bool,
    /// What `kubectl get` shows.
    pub columns: Vec<Value>,
}

impl Kind {
    /// Name of the definition.
    pub fn name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// The definition. `namespace` is where the conversion webhook's service lives.
    pub fn manifest(&self, namespace: &str) -> Value {
        let mut names = json!({
            "kind": self.kind, "listKind": format!("{}List", self.kind), "plural": self.plural,
            "singular": self.kind.to_lowercase(),
        });
        if !self.short_names.is_empty() {
            names = with(names, "shortNames", json!(self.short_names));
        }
        let versions = (self.versions)().into_iter();
        let conversion = if self.conversion.needs_webhook() {
            json!({"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1", "v1beta1"],
                "clientConfig": {"service": {
                    "namespace": namespace, "name": "kruise-webhook-service", "path": "/convert", "port": 443}},
            }})
        } else {
            json!({"strategy": "None"})
        };
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name()},
            "spec": {
                "group": self.group,
                "scope": match self.scope { Scope::Namespaced => "Namespaced", Scope::Cluster => "Cluster" },
                "names": names,
                "versions": versions.map(|version| self.version(version)).collect::<Vec<_>>(),
                "conversion": conversion,
            },
        })
    }

    fn version(&self, version: Version) -> Value {
        let (group, name, kind) = (self.group, version.name, self.kind);
        let mut root: Value = Object::new(self.about)
            .with(
                "apiVersion",
                string(&format!(
                    "Version of this representation of the object: {group}/{name}."
                )),
            )
            .with(
                "kind",
                string(&format!(
                    "Kind of this representation: {kind}, or {kind}List for a list."
                )),
            )
            .with("metadata", json!({"type": "object"}))
            .with("spec", version.spec)
            .with("status", version.status)
            .into();
        rules::put(self.plural, &mut root);
        let mut subresources = json!({"status": {}});
        if version.scale {
            let paths = json!({
                "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.labelSelector"});
            subresources = with(subresources, "scale", paths);
        }
        let written = json!({
            "name": name, "served": true, "storage": version.storage,
            "schema": {"openAPIV3Schema": root},
            "subresources": subresources,
        });
        if version.columns.is_empty() {
            return written;
        }
        with(written, "additionalPrinterColumns", Value::Array(version.columns))
    }
}
