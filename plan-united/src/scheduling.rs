//! Which subsets cannot take pods, as the conditions of their entries say.

mod reservation;

use std::time::Duration;

use jiff::Timestamp;
use kruise_api::{
    condition::JobCondition,
    names::conditions::{CREATED_SUBSET, RECOVER, RESCHEDULE, SCHEDULABLE},
    uniteddeployment::{Adaptive, ScheduleStrategy, SubsetStatus},
};
use kruise_plan_kit::jobs::left;

use crate::{
    conditions,
    pods::{Pending, pending},
    snapshot::Workload,
};

pub(crate) use reservation::{Rollout, reserve, text};

/// How long a reconcile waits at least until it looks again. Durations of specifications may be 0 or less.
const SOONEST: Duration = Duration::from_secs(1);

/// Whether a subset can take pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// It cannot.
    pub(crate) unschedulable: bool,
    /// It could not when this reconcile began.
    pub(crate) marked: bool,
    /// Pods that are kept although they cannot be scheduled.
    pub(crate) reserved: i32,
    /// Pods of older revisions that should have been updated by now.
    pub(crate) overdue: i32,
}

/// The condition of an entry, if it is False.
fn marked(entry: &SubsetStatus) -> Option<&JobCondition> {
    let mut conditions = entry.conditions.iter();
    conditions.find(|condition| condition.kind == SCHEDULABLE && condition.status == "False")
}

/// A new entry for a subset. `has_others` says whether there were entries before.
pub(crate) fn entry(
    name: &str,
    strategy: &ScheduleStrategy,
    has_others: bool,
    now: Timestamp,
) -> SubsetStatus {
    let mut entry = SubsetStatus {
        name: name.to_owned(),
        ..SubsetStatus::default()
    };
    if strategy.reserves() && has_others {
        let message = "newly-created subsets in reservation strategy".to_owned();
        let new = ("False", CREATED_SUBSET);
        conditions::set(&mut entry.conditions, SCHEDULABLE, new, message, now);
    }
    entry
}

/// Updates the entry of a subset whose pods move. Returns its state, and when it may have another one.
pub(crate) fn adapt(
    entry: &mut SubsetStatus,
    workload: Option<&Workload>,
    adaptive: &Adaptive,
    now: Timestamp,
) -> (State, Option<Duration>) {
    let mut state = State::default();
    let since = marked(entry).map(|condition| condition.last_transition_time.unwrap_or(now));
    state.marked = since.is_some();
    let limit = adaptive.critical_seconds();
    let unready = workload.filter(|workload| workload.view.ready < workload.replicas());
    let pods = unready.into_iter().flat_map(|workload| &workload.pods);
    let waits: Vec<Pending> = pods.map(|pod| pending(pod, limit, now)).collect();
    let waits_too_long = waits.contains(&Pending::TooLong);
    if let Some(since) = since {
        if let Some(left) = left(since, adaptive.unschedulable_seconds(), now) {
            state.unschedulable = true;
            return (state, Some(left));
        }
        // Without a duration it would change back and forth in each reconcile.
        if waits_too_long && adaptive.unschedulable_seconds() <= 0 {
            state.unschedulable = true;
            return (state, Some(SOONEST));
        }
        let seconds = now.duration_since(since).as_secs_f64();
        let message = format!("unschedulable subset recovered after {seconds:.6} seconds");
        conditions::set(
            &mut entry.conditions,
            SCHEDULABLE,
            ("True", RECOVER),
            message,
            now,
        );
    }
    if waits_too_long {
        state.unschedulable = true;
        let message = "timeout pending pods found".to_owned();
        conditions::set(
            &mut entry.conditions,
            SCHEDULABLE,
            ("False", RESCHEDULE),
            message,
            now,
        );
        let duration = u64::try_from(adaptive.unschedulable_seconds()).unwrap_or(0);
        return (state, Some(Duration::from_secs(duration).max(SOONEST)));
    }
    let next = waits.into_iter().filter_map(|wait| match wait {
        Pending::For(left) => Some(left),
        _ => None,
    });
    (state, next.min())
}
