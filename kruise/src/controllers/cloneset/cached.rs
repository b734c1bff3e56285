//! CloneSets as the manager caches them.

use kruise_api::{cloneset::CloneSet, meta::ObjectMeta};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;

/// A CloneSet in whichever version it arrived. One that cannot be read is kept with the reason: it must not stop the
/// watch, and its owner must learn about it.
#[derive(Clone, Debug)]
pub struct CachedCloneSet {
    /// Identity and version, readable in any case.
    pub metadata: ObjectMeta,
    /// The set, or what is wrong with it.
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
