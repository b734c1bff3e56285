//! A node: where it stands.

use kube_cache::Cached;
use serde::Deserialize;

use crate::Labels;

/// Name and labels of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NodeView {
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

impl NodeView {
    /// Labels, among them the topology keys.
    pub fn labels(&self) -> &Labels {
        &self.metadata.labels
    }
}

impl Cached for NodeView {
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
