//! Keys: the ResourceDistributions that a change of something else enqueues.

use std::{collections::BTreeSet, sync::Arc};

use kruise_plan_distribution::resourcedistribution::selects;
use kruise_views::{MetadataView, NamespaceView};
use kube_cache::{Delta, ObjectKey};

use super::cached::CachedDistribution;

/// Those that select a namespace, before or after a change of its labels, and when it appears, is deleted or is
/// gone. In one that is new there may be copies already, and in one that is kept nothing else is to be done.
pub(super) fn of_namespace(delta: &Delta<NamespaceView>, all: &[Arc<CachedDistribution>]) -> Vec<ObjectKey> {
    let is_same = |old: &NamespaceView, new: &NamespaceView| {
        old.labels() == new.labels() && old.is_terminating() == new.is_terminating()
    };
    if let (Some(old), Some(new)) = (&delta.old, &delta.new)
        && is_same(old, new)
    {
        return Vec::new();
    }
    let selects = |cached: &&Arc<CachedDistribution>| {
        let Ok(distribution) = &cached.object else {
            return false;
        };
        let mut versions = delta.old.iter().chain(&delta.new);
        versions.any(|namespace| selects(distribution, namespace.name(), namespace.labels()))
    };
    all.iter()
        .filter(selects)
        .map(|cached| ObjectKey::of(&**cached))
        .collect()
}

/// Of the ResourceDistributions that copy an object of this name: the one that controls it, and all of them if
/// nobody did or does, or it appears or is gone.
pub(super) fn of_copy(delta: &Delta<MetadataView>, copying: &[Arc<CachedDistribution>]) -> Vec<ObjectKey> {
    let controllers: BTreeSet<Option<&str>> = delta
        .old
        .iter()
        .chain(&delta.new)
        .map(|copy| copy.controller.as_ref().map(|controller| &*controller.uid))
        .collect();
    let stays = delta.old.is_some() && delta.new.is_some();
    let is_concerned = |cached: &&Arc<CachedDistribution>| {
        let is_same = stays && controllers.len() == 1;
        !is_same || controllers.contains(&Some(&*cached.metadata.uid))
    };
    copying
        .iter()
        .filter(is_concerned)
        .map(|cached| ObjectKey::of(&**cached))
        .collect()
}
