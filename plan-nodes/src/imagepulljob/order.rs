//! The order in which a workload updates its pods: their nodes pull in the same order.

use std::{cmp::Reverse, sync::Arc};

use jiff::Timestamp;
use kruise_api::{cloneset::CloneSet, statefulset::StatefulSet};
use kruise_plan_kit::{
    availability,
    order::{Candidate, sort_for_update},
    priority,
};
use kruise_views::{Labels, PodView};

/// The workload that a job was created for.
pub enum Workload<'a> {
    /// A CloneSet.
    CloneSet(&'a CloneSet),
    /// A StatefulSet.
    StatefulSet(&'a StatefulSet),
}

/// Sorts pods as their workload updates them; without a workload by name.
pub fn in_update_order(
    workload: Option<Workload<'_>>,
    mut pods: Vec<Arc<PodView>>,
    now: Timestamp,
) -> Vec<Arc<PodView>> {
    pods.sort_by(|one, other| one.name.cmp(&other.name));
    let sorted: Vec<&Arc<PodView>> = pods.iter().collect();
    let sorted = match workload {
        None => sorted,
        Some(Workload::CloneSet(set)) => of_cloneset(set, sorted, now),
        Some(Workload::StatefulSet(set)) => of_statefulset(set, sorted),
    };
    sorted.into_iter().cloned().collect()
}

fn of_cloneset<'p>(set: &CloneSet, mut pods: Vec<&'p Arc<PodView>>, now: Timestamp) -> Vec<&'p Arc<PodView>> {
    let min_ready = set.spec.min_ready_seconds;
    sort_for_update(&mut pods, |pod| Candidate {
        pod,
        service: availability::service(pod, min_ready, now),
    });
    let Some(rolling) = &set.spec.update_strategy.rolling_update else {
        return pods;
    };
    if let Some(strategy) = &rolling.priority_strategy {
        priority::prioritise(&mut pods, |pod| &pod.labels, strategy);
    }
    if !rolling.scatter_strategy.is_empty() {
        let all: Vec<&Labels> = pods.iter().map(|pod| &pod.labels).collect();
        pods = priority::scatter(pods, |pod| &pod.labels, &all, &rolling.scatter_strategy);
    }
    pods
}

fn of_statefulset<'p>(set: &StatefulSet, mut pods: Vec<&'p Arc<PodView>>) -> Vec<&'p Arc<PodView>> {
    pods.sort_by_key(|pod| Reverse(ordinal(&pod.name)));
    let rolling = set.spec.update_strategy.rolling_update.as_ref();
    let unordered = rolling.and_then(|rolling| rolling.unordered_update.as_ref());
    if let Some(strategy) = unordered.and_then(|unordered| unordered.priority_strategy.as_ref()) {
        priority::prioritise(&mut pods, |pod| &pod.labels, strategy);
    }
    pods
}

fn ordinal(name: &str) -> Option<u64> {
    name.rsplit_once('-')?.1.parse().ok()
}
