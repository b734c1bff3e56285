//! An object of one of our kinds in a cache.

use kruise_api::{meta::ObjectMeta, parse::Parse};
use kube_cache::Cached;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;

/// An object in any version. One that cannot be parsed is cached with the error: it must not stop the watch, and
/// the error becomes an event on it.
#[derive(Clone, Debug)]
pub struct Parsed<T> {
    /// Identity and version, which are always parsed.
    pub metadata: ObjectMeta,
    /// The object, or why it cannot be parsed.
    pub object: Result<T, String>,
}

impl<'de, T: Parse> Deserialize<'de> for Parsed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let metadata = value.get("metadata").unwrap_or(&Value::Null);
        let metadata = ObjectMeta::deserialize(metadata).map_err(D::Error::custom)?;
        let object = T::parse(value);
        Ok(Self { metadata, object })
    }
}

impl<T> Cached for Parsed<T> {
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

    fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    fn generation(&self) -> Option<i64> {
        Some(self.metadata.generation)
    }
}
