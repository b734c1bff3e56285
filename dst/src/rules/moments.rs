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

/// A time so long before another one.
pub fn before(at: Timestamp, lag: SignedDuration) -> Timestamp {
    at.checked_sub(lag).unwrap_or(at)
}

/// Judges each new pod once, whoever creates it.
#[derive(Debug, Default)]
pub struct Births {
    /// Changes of pods that were looked at.
    seen: usize,
}

impl Births {
    /// Judges pods that were not there before, as they were created.
    pub fn judge(
        &mut self,
        mirror: &Mirror,
        mut judge: impl FnMut(&Object) -> Option<Violation>,
    ) -> Option<Violation> {
        let pods = mirror.of(PODS);
        let from = std::mem::replace(&mut self.seen, pods.changes.len());
        (from..self.seen).find_map(|place| {
            let version = pods.changes.get(place)?.version;
            let pod = pods.changed_at(place)?.first()?;
            (pod.version == version).then(|| judge(pod)).flatten()
        })
    }
}
