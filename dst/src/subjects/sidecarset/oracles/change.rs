//! A write of a pod.

use crate::engine::oracles::{Mirror, Object, PODS, Write};

/// The versions of a pod before and after a write.
#[derive(Clone, Copy)]
pub struct Change<'a> {
    /// Before.
    pub before: &'a Object,
    /// After.
    pub after: &'a Object,
}

impl<'a> Change<'a> {
    /// What a write changed; none if it is no new version.
    pub fn of(write: &Write<'_>, mirror: &'a Mirror) -> Option<Self> {
        let pods = mirror.of(PODS);
        let place = write.marks.of(PODS);
        let version = pods.changes.get(place)?.version;
        let versions = pods.changed_at(place)?;
        let at = versions.iter().position(|one| one.version == version)?;
        Some(Self {
            before: versions.get(at.checked_sub(1)?)?,
            after: versions.get(at)?,
        })
    }
}
