//! The caches of CloneSets and of the jobs that pull their images.

use kruise_api::{cloneset::CloneSet, meta::ObjectMeta};
use kruise_plan_kit::ResourceId;
use kruise_runtime::caches::CacheId;
use kruise_views::ImageJobView;
use kube_cache::Index;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;

use crate::controllers::caches::PODS;

/// CloneSets in the served version.
pub(super) const CLONESETS: CacheId<CachedCloneSet> =
    CacheId::of("clonesets", ResourceId::CLONESETS).before(&[PODS.name]);
/// Jobs that pull images, by the uid of their controlling owner.
pub(super) const PULL_JOBS_BY_OWNER: Index<ImageJobView> = Index::new("owner", |job| {
    job.controller.iter().map(|owner| owner.uid.clone()).collect()
});
/// Jobs that pull images.
pub(super) const PULL_JOBS: CacheId<ImageJobView> =
    CacheId::of("imagepulljobs", ResourceId::IMAGE_PULL_JOBS).indexed(&[PULL_JOBS_BY_OWNER]);

/// A CloneSet in any version. One that cannot be parsed is cached with the error: it must not stop the watch, and the
/// error becomes an event on it.
#[derive(Clone, Debug)]
pub struct CachedCloneSet {
    /// Identity and version, which are always parsed.
    pub metadata: ObjectMeta,
    /// The CloneSet, or why it cannot be parsed.
    pub set: Result<CloneSet, String>,
}

impl<'de> Deserialize<'de> for CachedCloneSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let metadata = value.get("metadata").unwrap_or(&Value::Null);
        let metadata = ObjectMeta::deserialize(metadata).map_err(D::Error::custom)?;
        let set = CloneSet::from_value(value).map_err(|error| error.to_string());
        Ok(Self { metadata, set })
    }
}

kube_cache::cached!(CachedCloneSet, metadata);
