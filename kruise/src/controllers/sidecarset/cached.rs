//! SidecarSets and their revisions as the manager caches them.

use std::sync::Arc;

use kruise_admission::pod::sidecars::Set;
use kruise_api::meta::ObjectMeta;
use kruise_plan_kit::{ResourceId, sidecars::names};
use kruise_runtime::caches::{CacheId, Reach};
use kruise_views::RevisionView;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;

/// SidecarSets in the version on the wire.
pub const SIDECARSETS: CacheId<CachedSidecarSet> =
    CacheId::of("sidecarsets", ResourceId::SIDECARSETS).reach(Reach::Cluster);
/// Revisions of SidecarSets. They are in the manager's namespace, whichever one it is limited to.
pub const SET_REVISIONS: CacheId<CachedRevision> =
    CacheId::of("controllerrevisions of sidecarsets", ResourceId::REVISIONS)
        .reach(Reach::Own)
        .selected(names::SET_NAME);

/// A SidecarSet, ready to be matched against pods.
#[derive(Clone, Debug)]
pub struct CachedSidecarSet {
    /// Identity and version.
    pub metadata: ObjectMeta,
    /// The set.
    pub set: Arc<Set>,
}

/// A revision of a SidecarSet: as stored, which is what injection needs, and as plans look at it.
#[derive(Clone, Debug)]
pub struct CachedRevision {
    /// Identity and labels.
    pub metadata: ObjectMeta,
    /// As stored.
    pub object: Value,
    /// As plans look at it.
    pub view: Arc<RevisionView>,
}

/// Reads metadata, and drops who wrote which field: nobody asks for it, and it is as long as the rest.
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
        // its data stays text, which only a text can be read to
        let view = serde_json::from_str(&object.to_string()).map_err(D::Error::custom)?;
        Ok(Self {
            metadata,
            object,
            view: Arc::new(view),
        })
    }
}

kube_cache::cached!(CachedSidecarSet, metadata);

kube_cache::cached!(CachedRevision, metadata);
