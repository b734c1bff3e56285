//! A `ControllerRevision`: one version of a workload's template.

use jiff::Timestamp;
use kruise_api::{meta::ObjectMeta, names};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, value::RawValue};

use crate::OwnerView;

/// One stored revision. The template stays text until a plan needs it.
#[derive(Clone, Debug, Default)]
pub struct RevisionView {
    /// Namespace.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// Version of the stored object.
    pub resource_version: Box<str>,
    /// The controlling owner.
    pub controller: Option<Box<OwnerView>>,
    /// Creation time.
    pub created: Option<Timestamp>,
    /// Place in the history; the highest is the newest.
    pub number: i64,
    /// Hash of the claim templates it was created with; `None` if the annotation is missing.
    pub claims_hash: Option<Box<str>>,
    /// Hash of the template that it is for; `None` if that was not recorded.
    pub template_hash: Option<Box<str>>,
    /// Labels.
    pub labels: crate::Labels,
    /// `data` as stored.
    pub data: Box<str>,
}

impl RevisionView {
    /// UID of the controlling owner, if any.
    pub fn owner_uid(&self) -> Option<&str> {
        self.controller.as_ref().map(|owner| &*owner.uid)
    }

    /// The pod template in `data`, without its `$patch` directive; `None` if the data has another shape.
    pub fn template(&self) -> Option<Value> {
        let mut data: Value = serde_json::from_str(&self.data).ok()?;
        let mut template = data.pointer_mut("/spec/template")?.take();
        template.as_object_mut()?.remove("$patch");
        Some(template)
    }
}

kube_cache::cached!(RevisionView);

#[derive(Deserialize)]
struct Wire {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    revision: i64,
    #[serde(default)]
    data: Option<Box<RawValue>>,
}

impl<'de> Deserialize<'de> for RevisionView {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Wire {
            metadata,
            revision,
            data,
        } = Wire::deserialize(deserializer)?;
        let annotation = |key: &str| metadata.annotations.get(key).map(|value| value.as_str().into());
        Ok(Self {
            controller: metadata.controller().map(OwnerView::boxed),
            claims_hash: annotation(names::CLAIM_TEMPLATES_HASH),
            template_hash: annotation(names::TEMPLATE_HASH),
            namespace: metadata.namespace.into(),
            name: metadata.name.into(),
            uid: metadata.uid.into(),
            resource_version: metadata.resource_version.into(),
            created: metadata.creation_timestamp,
            number: revision,
            labels: metadata.labels.into_iter().collect(),
            data: data.map(|data| data.get().into()).unwrap_or_default(),
        })
    }
}
