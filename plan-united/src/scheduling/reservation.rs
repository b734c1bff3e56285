//! Pods that are kept although they cannot be scheduled.
//!
//! The label of a pod says whether it is reserved. A pod that has the label `false` counts in the scale subresource.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kruise_api::{
    names::{
        conditions::{READY, RESCHEDULE, SCHEDULABLE},
        uniteddeployment::RESERVED_POD,
    },
    uniteddeployment::{Adaptive, SubsetStatus},
};
use kruise_plan_kit::jobs::left;
use kruise_views::{Phase, PodView};

use super::{SOONEST, State, marked};
use crate::{
    conditions,
    pods::{Pending, is_of, is_ready, pending},
    snapshot::Workload,
};

/// How far the newest revision is.
#[derive(Clone, Copy)]
pub(crate) struct Rollout<'a> {
    /// The newest revision.
    pub(crate) revision: &'a str,
    /// When it became the newest; `None` if that is not known.
    pub(crate) since: Option<Timestamp>,
    /// Pods of the subset that are to stay at older revisions.
    pub(crate) partition: i32,
}

/// Pods whose label is to change, and whether they are reserved.
pub(crate) type Relabelled = Vec<(Arc<PodView>, bool)>;

/// What is known of the pods of a subset.
struct Round<'a> {
    rollout: Rollout<'a>,
    adaptive: &'a Adaptive,
    is_marked: bool,
    /// Are there more pods of older revisions than the partition keeps?
    is_behind: bool,
    now: Timestamp,
    next: Vec<Duration>,
}

/// What a pod is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Reserved,
    /// Reserved, and of an older revision that should have been replaced by now.
    Overdue,
    Free,
}

/// Updates the entry of a subset whose pods are reserved. Returns its state, when it may have another one, and the
/// pods whose label is to change.
pub(crate) fn reserve(
    entry: &mut SubsetStatus,
    workload: &Workload,
    adaptive: &Adaptive,
    rollout: Rollout<'_>,
    now: Timestamp,
) -> (State, Option<Duration>, Relabelled) {
    let active = || workload.pods.iter().filter(|pod| pod.is_active());
    let old = active().filter(|pod| !is_of(pod, rollout.revision)).count();
    let mut round = Round {
        rollout,
        adaptive,
        is_marked: marked(entry).is_some(),
        is_behind: old > usize::try_from(rollout.partition).unwrap_or(0),
        now,
        next: Vec::new(),
    };
    let mut state = State {
        marked: round.is_marked,
        ..State::default()
    };
    let mut labels = Vec::new();
    for pod in active() {
        let verdict = round.judge(pod);
        let is_reserved = verdict != Verdict::Free;
        state.reserved += i32::from(is_reserved);
        state.overdue += i32::from(verdict == Verdict::Overdue);
        if pod.labels.get(RESERVED_POD) != Some(text(is_reserved)) {
            labels.push((pod.clone(), is_reserved));
        }
    }
    state.unschedulable = state.reserved > 0;
    let (status, message) = if state.unschedulable {
        ("False", "reserved pods found")
    } else {
        ("True", "no reserved pods")
    };
    let reason = (status, RESCHEDULE);
    conditions::set(
        &mut entry.conditions,
        SCHEDULABLE,
        reason,
        message.to_owned(),
        now,
    );
    (state, round.next.into_iter().min(), labels)
}

/// The value of the label.
pub(crate) fn text(is_reserved: bool) -> &'static str {
    if is_reserved { "true" } else { "false" }
}

impl Round<'_> {
    fn judge(&mut self, pod: &PodView) -> Verdict {
        let label = pod.labels.get(RESERVED_POD);
        if label == Some("true") {
            return if self.is_healthy(pod) {
                Verdict::Free
            } else {
                Verdict::Reserved
            };
        }
        if self.is_marked && label.is_none() {
            self.next.push(self.hold());
            return Verdict::Reserved;
        }
        let limit = self.adaptive.critical_seconds();
        if !is_of(pod, self.rollout.revision)
            && self.is_behind
            && let Some(since) = self.rollout.since
        {
            return match left(since, limit, self.now) {
                None => Verdict::Overdue,
                Some(left) => {
                    self.next.push(left);
                    Verdict::Free
                }
            };
        }
        match pending(pod, limit, self.now) {
            Pending::TooLong => Verdict::Reserved,
            Pending::For(left) => {
                self.next.push(left);
                Verdict::Free
            }
            Pending::No => Verdict::Free,
        }
    }

    /// How long a reserved pod has to be Ready.
    fn hold(&self) -> Duration {
        let seconds = u64::try_from(self.adaptive.unschedulable_seconds()).unwrap_or(0);
        Duration::from_secs(seconds).max(SOONEST)
    }

    /// Is the reserved pod healthy for long enough?
    fn is_healthy(&mut self, pod: &PodView) -> bool {
        // The partition keeps pods at older revisions.
        let is_current = is_of(pod, self.rollout.revision) || !self.is_behind;
        let runs = pod.phase == Phase::Running && is_current && is_ready(pod);
        let since = pod
            .condition(READY)
            .and_then(|ready| ready.since)
            .filter(|_| runs);
        let Some(since) = since else {
            self.next.push(self.hold());
            return false;
        };
        match left(since, self.adaptive.unschedulable_seconds(), self.now) {
            None => true,
            Some(left) => {
                self.next.push(left);
                false
            }
        }
    }
}
