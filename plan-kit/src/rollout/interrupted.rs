//! Pods with resources that an interrupted update left behind get back what their revision asks for.
//!
//! A pod that is to be updated anyway is given what its new revision asks for by that, also where its old revision
//! asks for the same. The others are repaired where nothing is to be updated.

use std::collections::BTreeMap;

use kruise_api::names::INPLACE_GRACE;
use kruise_views::PodView;

use super::{Pod, Rollout, Updater};
use crate::{
    history::revision::Revision,
    inplace::{Amounts, Resize, was_given_back},
    lifecycle::State,
    plan::ObjectWrites,
};

/// The updates, as many as may be out of service; of those that restart nothing, one at least.
///
/// Pods that are out of service already come first and cost nothing: it may be what was left behind that breaks them.
pub fn repair(rollout: &Rollout<'_>, pods: &[Pod<'_>]) -> Vec<ObjectWrites> {
    if !rollout.options.vertical_scaling.has_endpoint() || !rollout.strategy.updates_in_place() {
        return Vec::new();
    }
    let mut found = left_behind(rollout, pods);
    found.sort_by_key(|found| found.pod.service.is_available());
    let out = |all: &mut dyn Iterator<Item = &Pod<'_>>| {
        all.filter(|pod| !pod.service.is_available()).count() as i32
    };
    let mut unavailable = out(&mut pods.iter());
    // Those that nothing can be given back to.
    let mut taken = unavailable - out(&mut found.iter().map(|found| found.pod));
    // Pods that are missing serve nobody either.
    let missing = rollout.budget.replicas.saturating_sub(pods.len() as i32);
    let mut writes = Vec::new();
    for LeftBehind {
        pod,
        revision,
        missing: resources,
    } in found
    {
        let restarts = resources.values().any(|resize| resize.restarts);
        let room = rollout
            .budget
            .max_unavailable
            .max(i32::from(!restarts))
            .saturating_sub(missing);
        let serves = pod.service.is_available();
        if taken >= room || (serves && unavailable >= room) {
            continue;
        }
        if let Some(object) = Updater::new(rollout, revision).give_back(pod, resources) {
            unavailable += i32::from(serves);
            taken += 1;
            writes.push(object);
        }
    }
    writes
}

/// A pod to which something is to be given back.
struct LeftBehind<'m, 'a> {
    pod: &'m Pod<'a>,
    /// The one it is on.
    revision: &'m Revision,
    missing: BTreeMap<String, Resize>,
}

fn left_behind<'m, 'a>(rollout: &'m Rollout<'_>, pods: &'m [Pod<'a>]) -> Vec<LeftBehind<'m, 'a>> {
    let mut wanted: BTreeMap<&str, Amounts> = BTreeMap::new();
    let mut found = Vec::new();
    for pod in pods.iter().filter(|pod| is_at_rest(pod)) {
        let label = pod.label();
        let Some(revision) = rollout.history.by_label(label) else {
            continue;
        };
        if was_given_back(pod.view, |name| revision.labels(name)) {
            continue;
        }
        let amounts = wanted
            .entry(label)
            .or_insert_with(|| Amounts::of(&revision.template));
        let missing = amounts.missing(pod.view, rollout.options.vertical_scaling);
        if is_left(rollout, pod.view, &missing) {
            found.push(LeftBehind {
                pod,
                revision,
                missing,
            });
        }
    }
    found
}

/// What an interrupted update has kept a pod from having, which is about to be updated to this revision.
///
/// Whether it was given some back before does not matter: this is asked once for each update.
pub(super) fn lacking(rollout: &Rollout<'_>, pod: &PodView, revision: &Revision) -> BTreeMap<String, Resize> {
    let scaling = rollout.options.vertical_scaling;
    if !scaling.has_endpoint() || !is_written(pod) {
        return BTreeMap::new();
    }
    let mut missing = Amounts::of(&revision.template).missing(pod, scaling);
    if !is_left(rollout, pod, &missing) {
        missing.clear();
    }
    missing
}

/// Is what a pod has in place of these amounts what some revision asks for?
fn is_left(rollout: &Rollout<'_>, pod: &PodView, missing: &BTreeMap<String, Resize>) -> bool {
    let mut all = rollout.history.templates();
    !missing.is_empty() && all.any(|one| Amounts::of(&one.template).left(pod, missing))
}

/// Has anybody asked for resources of the pod since it was made?
fn is_written(pod: &PodView) -> bool {
    pod.containers.iter().any(|container| container.written.any())
}

/// Neither on its way to a revision nor about to be deleted.
fn is_at_rest(pod: &Pod<'_>) -> bool {
    matches!(pod.state, State::None | State::PreparingNormal | State::Normal)
        && !pod.specified
        && pod.view.annotations.get(INPLACE_GRACE).is_none()
        && is_written(pod.view)
}
