//! Which pods are the set's.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use kruise_api::cloneset::CloneSet;
use kruise_plan_kit::{
    Memory, Plan,
    rollout::{
        Pod, Revisions,
        released::{self, Hold},
    },
};
use kruise_views::PodView;

/// The active pods that the set controls, each list sorted by name. Pods that ended or are being deleted do not count.
pub(super) struct Claimed<'a> {
    /// Matching the selector.
    pub(super) active: Vec<&'a Arc<PodView>>,
    /// No longer matching.
    pub(super) released: Vec<&'a Arc<PodView>>,
}

/// Splits the pods.
pub(super) fn claim<'a>(set: &CloneSet, pods: &'a [Arc<PodView>]) -> Claimed<'a> {
    let mut claimed = Claimed {
        active: Vec::with_capacity(pods.len()),
        released: Vec::new(),
    };
    for pod in pods.iter().filter(|pod| pod.is_active()) {
        if set.spec.selector.matches_by(|key| pod.labels.get(key)) {
            claimed.active.push(pod);
        } else {
            claimed.released.push(pod);
        }
    }
    claimed.active.sort_by(|a, b| a.name.cmp(&b.name));
    claimed.released.sort_by(|a, b| a.name.cmp(&b.name));
    claimed
}

impl<'a> Claimed<'a> {
    /// Classifies the active pods against the revisions.
    pub(super) fn classify(&self, set: &CloneSet, revisions: &Revisions<'_>, now: Timestamp) -> Vec<Pod<'a>> {
        let named = &set.spec.scale_strategy.pods_to_delete;
        let named: BTreeSet<&str> = named.iter().map(String::as_str).collect();
        let settling = set.spec.min_ready_seconds;
        let pods = self.active.iter();
        pods.map(|pod| Pod::of(pod, revisions, named.contains(&*pod.name), settling, now))
            .collect()
    }

    /// Lets the pods go that left the selector.
    pub(super) fn release(
        &self,
        owner_uid: &str,
        memory: &Memory,
        now: Timestamp,
        plan: &mut Plan,
    ) -> Option<Hold> {
        let reason = "its labels no longer match the selector";
        released::release(&self.released, (owner_uid, reason), memory, now, plan)
    }
}
