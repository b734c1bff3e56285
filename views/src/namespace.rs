//! A namespace: what it is labelled with.

use kube_cache::Cached;
use serde::Deserialize;

use crate::Labels;

/// Name and labels of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NamespaceView {
    metadata: Meta,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Meta {
    name: Box<str>,
    uid: Box<str>,
    resource_version: Box<str>,
    labels: Labels,
}

impl NamespaceView {
    /// Labels, among them its name.
    pub fn labels(&self) -> &Labels {
        &self.metadata.labels
    }
}

impl Cached for NamespaceView {
    fn namespace(&self) -> &'static str {
        ""
    }

    fn name(&self) -> &str {
        &self.metadata.name
    }

    fn uid(&self) -> &str {
        &self.metadata.uid
    }

    fn resource_version(&self) -> &str {
        &self.metadata.resource_version
    }
}
