//! The cache of CloneSets.

use kruise_api::cloneset::CloneSet;
use kruise_plan_kit::ResourceId;
use kruise_runtime::caches::CacheId;
use serde_json::Value;

use crate::controllers::{
    caches::PODS,
    parsed::{Parse, Parsed},
};

/// CloneSets in the served version.
pub(super) const CLONESETS: CacheId<Parsed<CloneSet>> =
    CacheId::of("clonesets", ResourceId::CLONESETS).before(&[PODS.name]);

impl Parse for CloneSet {
    fn parse(object: Value) -> Result<Self, String> {
        Self::from_value(object).map_err(|error| error.to_string())
    }
}
