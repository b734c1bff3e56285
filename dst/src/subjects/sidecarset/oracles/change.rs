//! A write of a pod.

use crate::rules::prelude::*;

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
        let [before, after] = write.both(mirror, PODS)?;
        Some(Self { before, after })
    }
}
