//! The caches of StatefulSets and of the storage classes of their claims.

use kruise_api::statefulset::StatefulSet;
use kruise_plan_kit::ResourceId;
use kruise_runtime::caches::{CacheId, Reach};
use kruise_views::StorageClassView;
use serde_json::Value;

use crate::controllers::{
    caches::{CLAIMS, PODS},
    parsed::{Parse, Parsed},
};

/// StatefulSets in the served version.
pub(super) const STATEFULSETS: CacheId<Parsed<StatefulSet>> =
    CacheId::of("statefulsets", ResourceId::STATEFULSETS).before(&[PODS.name, CLAIMS.name]);
/// Storage classes.
pub(super) const CLASSES: CacheId<StorageClassView> =
    CacheId::of("storageclasses", ResourceId::STORAGE_CLASSES).reach(Reach::Cluster);

impl Parse for StatefulSet {
    fn parse(object: Value) -> Result<Self, String> {
        Self::from_value(object)
    }
}
