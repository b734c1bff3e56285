//! Is a pod available, as budgets count it?

use jiff::Timestamp;
use kruise_api::names::podunavailablebudget::UNAVAILABLE_PREFIX;
use kruise_views::PodView;

use crate::{
    availability::is_ready_for_certain,
    inplace::{self, Progress, is_pending},
    sidecars::{UpgradeStates, names},
};

/// Is it ready, neither being deleted nor labelled unavailable, and do its containers run what they should?
///
/// Images by digest need no rule of their own: runtimes report the digest of another repository, or of something
/// else, so a difference proves nothing while no update is under way.
pub fn is_available(pod: &PodView, now: Timestamp) -> bool {
    pod.is_active() && !is_labelled(pod) && is_ready_for_certain(pod, now) && is_up_to_date(pod, now)
}

fn is_labelled(pod: &PodView) -> bool {
    pod.labels
        .iter()
        .any(|(key, _)| key.starts_with(UNAVAILABLE_PREFIX))
}

/// Have the updates in place that were begun arrived, those of sidecars included? An annotation that cannot be read
/// says nothing: the pod is ready, and its budget keeps it.
fn is_up_to_date(pod: &PodView, now: Timestamp) -> bool {
    let own = inplace::progress(pod, now);
    matches!(own, Progress::Complete | Progress::Unreadable(_)) && are_sidecars_up_to_date(pod)
}

fn are_sidecars_up_to_date(pod: &PodView) -> bool {
    let Some(text) = pod.annotations.get(names::INPLACE_STATE) else {
        return true;
    };
    let states = UpgradeStates::read(text).unwrap_or_default();
    let sets = states.0.values();
    let mut before = sets
        .filter_map(|state| state.last_container_statuses.as_ref())
        .flatten();
    before.all(|(container, before)| {
        let wanted = pod.image_of(container).unwrap_or_default();
        let status = pod.status_of(container);
        status.is_none_or(|status| !is_pending(status, before, wanted))
    })
}
