//! What the pods of a workload say about how long an update takes.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kruise_views::PodView;

use super::types::Sample;
use crate::{
    inplace::read_state,
    lifecycle::{State, fully_hooked, holds},
    rollout::{Pod, Rollout},
};

/// Nodes report the end of a pod a little after its grace period.
const SLACK: SignedDuration = SignedDuration::from_secs(10);

/// What the pods of a workload say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Of those that are on the revision and available.
    pub taken: Vec<Sample>,
    /// For how long those that are on the revision and not available yet are on their way, where that is known.
    pub under_way: Vec<Option<Duration>>,
    /// How many of `under_way` are places whose pod is gone or being deleted.
    pub replaced: usize,
    /// How many of these pods should have been gone. A finalizer holds them, or their nodes do not report.
    pub overstaying: usize,
    /// How many lifecycle hooks hold.
    pub hooked: usize,
}

impl Observed {
    /// Reads the pods that can be acted on. `has_arrived` says which of them are on the revision that the rollout
    /// leads to. Pods that are to go are nobody's update.
    pub fn of<'p, 'a: 'p>(
        rollout: &Rollout<'_>,
        pods: impl IntoIterator<Item = &'p Pod<'a>>,
        has_arrived: impl Fn(&Pod<'a>) -> bool,
    ) -> Self {
        let mut observed = Self::default();
        for pod in pods {
            let arrived = has_arrived(pod);
            observed.hooked += usize::from(is_hooked(rollout, pod, arrived));
            if !arrived || pod.specified || pod.state == State::PreparingDelete {
                continue;
            }
            if pod.service.is_available() {
                observed.taken.extend(sample(pod.view));
            } else {
                let since = began(pod.view).map(|(began, _)| between(began, rollout.now));
                observed.under_way.push(since);
            }
        }
        observed
    }

    /// Adds places that get other pods: so many whose pod is gone, and those of the pods that are being deleted.
    /// When that began is stored nowhere.
    pub fn add_replaced<'v>(
        &mut self,
        gone: usize,
        leaving: impl IntoIterator<Item = &'v PodView>,
        now: Timestamp,
    ) {
        let before = self.under_way.len();
        self.under_way.extend(std::iter::repeat_n(None, gone));
        for pod in leaving {
            self.under_way.push(None);
            let overstays = |gone_by: Timestamp| now.duration_since(gone_by) > SLACK;
            self.overstaying += usize::from(pod.deleting && pod.gone_by.is_some_and(overstays));
        }
        self.replaced += self.under_way.len() - before;
    }
}

/// Does a hook hold the pod on its way to the revision?
fn is_hooked(rollout: &Rollout<'_>, pod: &Pod<'_>, arrived: bool) -> bool {
    let hooks = rollout.lifecycle;
    let update = hooks.and_then(|hooks| hooks.in_place_update.as_ref());
    let normal = hooks.and_then(|hooks| hooks.pre_normal.as_ref());
    match pod.state {
        State::PreparingDelete => !arrived && rollout.is_held(pod),
        State::PreparingUpdate => holds(update, pod.view),
        State::Updated => update.is_some() && !fully_hooked(update, pod.view),
        State::PreparingNormal => {
            normal.is_some() && pod.view.node.is_some() && !fully_hooked(normal, pod.view)
        }
        State::None | State::Normal | State::Updating | State::Foreign => false,
    }
}

/// How long the pod took to be ready; `None` if it does not say.
fn sample(pod: &PodView) -> Option<Sample> {
    let (began, in_place) = began(pod)?;
    let ready = pod.condition("Ready")?.since?;
    Some(Sample {
        began,
        took: between(began, ready),
        // A new pod cannot be ready before it is there: such a time is that of another clock.
        stayed_ready: in_place && ready < began,
        in_place,
    })
}

/// When the pod set out for the revision that it is labelled with, and whether that was in place.
fn began(pod: &PodView) -> Option<(Timestamp, bool)> {
    let label = pod
        .labels
        .get(kruise_api::names::REVISION_HASH)
        .unwrap_or_default();
    let state = read_state(pod).ok().flatten();
    let state = state.filter(|state| go_compat::revision::label_matches_revision(label, &state.revision));
    let updated = state.and_then(|state| state.update_timestamp?.parse().ok());
    updated
        .map(|time| (time, true))
        .or_else(|| pod.created.map(|time| (time, false)))
}

fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}
