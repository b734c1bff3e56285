//! The caches of SidecarSets and of their revisions.

use std::sync::Arc;

use kruise_admission::pod::sidecars::Set;
use kruise_api::meta::ObjectMeta;
use kruise_plan_kit::{ResourceId, sidecars::names};
use kruise_runtime::caches::{CacheId, Reach};
use kruise_views::{PodView, RevisionView};
use kube_cache::{Cached, Index};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;

use super::injected;

/// SidecarSets in the served version.
pub const SIDECARSETS: CacheId<CachedSidecarSet> =
    CacheId::of("sidecarsets", kruise_api::sidecarset::RESOURCE).reach(Reach::Cluster);
/// Revisions of SidecarSets. They are in the manager's namespace, even if `--namespace` names another one.
pub const SET_REVISIONS: CacheId<CachedRevision> =
    CacheId::of("controllerrevisions of sidecarsets", ResourceId::REVISIONS)
        .reach(Reach::Own)
        .selected(names::SET_NAME);

/// Pods by the names of the SidecarSets injected into them.
pub(super) const PODS_BY_SIDECARSET: Index<PodView> =
    Index::new("sidecarset", |pod| injected(pod).map(Into::into).collect());

/// A SidecarSet with its parsed selectors.
#[derive(Clone, Debug)]
pub struct CachedSidecarSet {
    /// Identity and version.
    pub metadata: ObjectMeta,
    /// The SidecarSet.
    pub set: Arc<Set>,
}

/// A revision of a SidecarSet: as it is stored, for injection, and as a view, for plans.
#[derive(Clone, Debug)]
pub struct CachedRevision {
    /// Identity and labels.
    pub metadata: ObjectMeta,
    /// As it is stored.
    pub object: Value,
    /// The view of plans.
    pub view: Arc<RevisionView>,
}

/// Deserializes metadata and object, without `managedFields`: nothing reads them, and they are as long as the rest.
fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(ObjectMeta, Value), D::Error> {
    let mut value = Value::deserialize(deserializer)?;
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    let metadata = value.get("metadata").cloned().unwrap_or_default();
    Ok((
        ObjectMeta::deserialize(metadata).map_err(D::Error::custom)?,
        value,
    ))
}

impl<'de> Deserialize<'de> for CachedSidecarSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (metadata, object) = read(deserializer)?;
        let set = Arc::new(Set::new(Arc::new(object)));
        Ok(Self { metadata, set })
    }
}

impl<'de> Deserialize<'de> for CachedRevision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (metadata, object) = read(deserializer)?;
        // `data` stays raw JSON text in the view, which only a deserializer of text supports.
        let view = serde_json::from_str(&object.to_string()).map_err(D::Error::custom)?;
        Ok(Self {
            metadata,
            object,
            view: Arc::new(view),
        })
    }
}

impl Cached for CachedSidecarSet {
    fn namespace(&self) -> &str {
        &self.metadata.namespace
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

    fn generation(&self) -> Option<i64> {
        Some(self.metadata.generation)
    }
}

kube_cache::cached!(CachedRevision, metadata);
