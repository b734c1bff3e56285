//! What was stored at a moment, for oracles that judge objects and not their writers.

use crate::rules::prelude::*;

/// The version of an object that is the newest at a version of the cluster.
pub fn at(versions: &[Arc<Object>], version: u64) -> Option<&Arc<Object>> {
    let until = versions.partition_point(|one| one.version <= version);
    versions.get(until.checked_sub(1)?)
}

/// Versions of an object that were the newest at some time since `from`, up to a version of the cluster.
pub fn since(versions: &[Arc<Object>], from: Timestamp, version: u64) -> &[Arc<Object>] {
    let first = versions.partition_point(|one| one.at <= from).saturating_sub(1);
    let until = versions.partition_point(|one| one.version <= version);
    versions.get(first..until).unwrap_or_default()
}

/// When an object was created.
pub fn created(object: &Object) -> Timestamp {
    let text = object.value()["metadata"]["creationTimestamp"].as_str();
    text.and_then(|text| text.parse().ok())
        .unwrap_or(Timestamp::UNIX_EPOCH)
}
