//! The counts of the status.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use kruise_api::workloadspread::{SubsetStatus, WorkloadSpread, WorkloadSpreadStatus};
use kruise_plan_kit::{
    EventNote,
    jobs::left,
    spread::{CREATING, DELETING, UNLIMITED, has_ordinals, matched},
};
use kruise_views::PodView;

use super::{
    adaptive::{self, Adapted, mark},
    events,
    groups::Group,
};

/// What was counted.
#[derive(Default)]
pub(super) struct Counted<'a> {
    /// The status as it is to be.
    pub(super) status: WorkloadSpreadStatus,
    /// Pods that wait too long for a node, with the version and the index of their subset.
    pub(super) failed: Vec<(&'a Arc<PodView>, usize)>,
    /// When something changes by the clock.
    pub(super) again: Vec<Duration>,
    /// Events.
    pub(super) events: Vec<EventNote>,
}

/// Counts the pods of all versions, and of each.
pub(super) fn count<'a>(
    spread: &WorkloadSpread,
    groups: &BTreeMap<String, Group<'a>>,
    limits: &[Option<i32>],
    now: Timestamp,
) -> Counted<'a> {
    let mut counted = Counted::default();
    let mut all = Group::default();
    for group in groups.values() {
        all.pods.extend(group.pods.iter().copied());
    }
    let stored = &spread.status;
    let mut list = List {
        spread,
        limits,
        now,
        counted: &mut counted,
        reports: true,
    };
    let subset_statuses = list.of(&all, &stored.subset_statuses);
    let mut versioned = BTreeMap::new();
    if !has_ordinals(&spread.spec) {
        list.reports = false;
        let old = &stored.versioned_subset_statuses;
        let none = Group::default();
        let versions = groups
            .keys()
            .chain(old.keys().filter(|version| !groups.contains_key(*version)));
        for version in versions {
            let group = groups.get(version);
            let old = old.get(version).map_or(&[][..], Vec::as_slice);
            let subsets = list.of(group.unwrap_or(&none), old);
            if group.is_some() || subsets.iter().any(is_in_use) {
                versioned.insert(version.clone(), subsets);
            }
        }
    }
    counted.status = WorkloadSpreadStatus {
        observed_generation: spread.metadata.generation,
        subset_statuses,
        versioned_subset_statuses: versioned,
    };
    counted
}

/// A mark stays even if all pods of the version had to move: their successors must not come back.
fn is_in_use(subset: &SubsetStatus) -> bool {
    let has_pods = subset.replicas > 0 || !subset.creating_pods.is_empty();
    has_pods || !subset.deleting_pods.is_empty() || mark(subset).is_some()
}

/// The subsets of the specification, of all pods or those of one version.
struct List<'l, 'a> {
    spread: &'l WorkloadSpread,
    limits: &'l [Option<i32>],
    now: Timestamp,
    counted: &'l mut Counted<'a>,
    /// Are these all pods? Then their failures are reported.
    reports: bool,
}

impl<'a> List<'_, 'a> {
    fn of(&mut self, group: &Group<'a>, old: &[SubsetStatus]) -> Vec<SubsetStatus> {
        let subsets = self.spread.spec.subsets.iter().zip(self.limits);
        let mut statuses = Vec::new();
        for (index, (subset, limit)) in subsets.enumerate() {
            let pods: Vec<&'a Arc<PodView>> = group.subset(index).collect();
            let stored = old.iter().find(|one| one.name == subset.name);
            let stored = stored.cloned().unwrap_or_default();
            let mut status = self.subset(&subset.name, *limit, &pods, &stored);
            let is_last = index + 1 == self.spread.spec.subsets.len();
            let adapted = adaptive::adapt(&self.spread.spec, is_last, &pods, &stored, self.now);
            status.conditions = self.adapted(adapted, &subset.name, index);
            statuses.push(status);
        }
        statuses
    }

    fn adapted(
        &mut self,
        adapted: Adapted<'a>,
        subset: &str,
        index: usize,
    ) -> Vec<kruise_api::workloadspread::SubsetCondition> {
        let counted = &mut *self.counted;
        counted.again.extend(adapted.again);
        if self.reports {
            let failed = adapted.failed.into_iter();
            counted.failed.extend(failed.map(|pod| (pod, index)));
            if adapted.has_recovered {
                counted.events.push(events::recovered(subset));
            }
        }
        adapted.conditions
    }

    fn subset(
        &mut self,
        name: &str,
        limit: Option<i32>,
        pods: &[&'a Arc<PodView>],
        stored: &SubsetStatus,
    ) -> SubsetStatus {
        let mut status = SubsetStatus {
            name: name.to_owned(),
            ..SubsetStatus::default()
        };
        let mut creating = stored.creating_pods.clone();
        for pod in pods {
            let uid = matched(&pod.annotations).map_or_else(String::new, |matched| matched.uid);
            let key = if uid.is_empty() { &*pod.name } else { uid.as_str() };
            creating.0.remove(key);
            if pod.is_active() {
                status.replicas = status.replicas.saturating_add(1);
                self.deleting(pod, stored, &mut status);
            }
        }
        for (pod, since) in creating.0 {
            match left(since, seconds(CREATING), self.now) {
                Some(left) => {
                    self.counted.again.push(left);
                    status.creating_pods.0.insert(pod, since);
                }
                None => self.counted.events.push(events::not_created(&pod, name)),
            }
        }
        status.missing_replicas = missing(limit, &status);
        status
    }

    /// An active pod whose deletion may be recorded. A record from before its creation is about an earlier pod of
    /// its name.
    fn deleting(&mut self, pod: &PodView, stored: &SubsetStatus, status: &mut SubsetStatus) {
        let Some(since) = stored.deleting_pods.get(&pod.name) else {
            return;
        };
        if pod
            .created
            .is_some_and(|created| since.as_second() < created.as_second())
        {
            return;
        }
        if let Some(left) = left(since, seconds(DELETING), self.now) {
            self.counted.again.push(left);
            status.deleting_pods.0.insert(pod.name.to_string(), since);
        } else {
            let event = events::not_deleted(&pod.name, &status.name);
            self.counted.events.push(event);
        }
    }
}

/// How many pods are missing once those are gone that are about to go, and those are there that are about to come.
fn missing(limit: Option<i32>, status: &SubsetStatus) -> i32 {
    let Some(limit) = limit else {
        return UNLIMITED;
    };
    let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let (going, coming) = (
        number(status.deleting_pods.len()),
        number(status.creating_pods.len()),
    );
    let missing = i64::from(limit) - i64::from(status.replicas) + going - coming;
    i32::try_from(missing.clamp(0, i64::from(limit.max(0)))).unwrap_or(limit)
}

fn seconds(life: Duration) -> i64 {
    i64::try_from(life.as_secs()).unwrap_or(i64::MAX)
}
