//! Cluster-scoped objects of which only the labels are read: namespaces.

use kube_cache::Cached;
use serde::Deserialize;

use crate::Labels;

/// Name and labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LabelledView {
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

impl LabelledView {
    /// Labels, among them the name of a namespace.
    pub fn labels(&self) -> &Labels {
        &self.metadata.labels
    }
}

impl Cached for LabelledView {
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

/// A namespace, for namespace selectors.
pub type NamespaceView = LabelledView;
