//! Cluster-scoped objects of which hardly more than the labels is read: namespaces.

use kube_cache::Cached;
use serde::{Deserialize, Deserializer, de::IgnoredAny};

use crate::Labels;

/// Name, labels, and whether it is being deleted.
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
    #[serde(deserialize_with = "is_present")]
    deletion_timestamp: bool,
}

/// A time is kept as the fact that there is one.
fn is_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::<IgnoredAny>::deserialize(deserializer)?.is_some())
}

impl LabelledView {
    /// Name.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Is it being deleted?
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp
    }

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

    fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp
    }
}

/// A namespace, for namespace selectors.
pub type NamespaceView = LabelledView;
