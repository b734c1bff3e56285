//! Pods with resources that an update left behind when it broke off get back what their revision asks for.
//!
//! A pod that is to be updated anyway is given what its new revision asks for by that, also where its old revision asks for
//! the same. The others are tended where nothing is to be updated.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kruise_api::names::{INPLACE_GRACE, REVISION_HASH};
use kruise_plan_kit::{
    Chain,
    inplace::{Amounts, Resize, came_with_resources},
    lifecycle::State,
    revision::Revision,
};
use kruise_views::PodView;

use super::{members::Member, mover::Mover, numbers::Limits, observe::Observed, templates::Templates};

/// The updates, as many as may be out of service; of those that restart nothing, one at least.
///
/// Pods that are out of service already come first and cost nothing: it may be what was left behind that breaks them.
pub(super) fn tend(
    observed: &Observed<'_>,
    templates: &Templates<'_>,
    members: &[Member<'_>],
    limits: Limits,
    now: Timestamp,
) -> Vec<Chain> {
    if !observed.options.vertical_scaling.has_endpoint() || !changes_in_place(observed) {
        return Vec::new();
    }
    let mut found = left_behind(observed, templates, members);
    found.sort_by_key(|found| found.member.service.is_available());
    let out = |all: &mut dyn Iterator<Item = &Member<'_>>| {
        all.filter(|member| !member.service.is_available()).count() as i32
    };
    let mut unavailable = out(&mut members.iter());
    // Those that nothing can be given back to.
    let mut taken = unavailable - out(&mut found.iter().map(|found| found.member));
    // Pods that are missing serve nobody either.
    let missing = limits.replicas.saturating_sub(members.len() as i32);
    let mut chains = Vec::new();
    for LeftBehind {
        member,
        revision,
        missing: resources,
    } in found
    {
        let restarts = resources.values().any(|resize| resize.restarts);
        let room = limits
            .max_unavailable
            .max(i32::from(!restarts))
            .saturating_sub(missing);
        let serves = member.service.is_available();
        if taken >= room || (serves && unavailable >= room) {
            continue;
        }
        let mover = Mover::new(observed, revision, templates, now);
        if let Some(chain) = mover.give_back(member, resources) {
            unavailable += i32::from(serves);
            taken += 1;
            chains.push(chain);
        }
    }
    chains
}

/// A pod to which something is to be given back.
struct LeftBehind<'m, 'a> {
    member: &'m Member<'a>,
    /// The one it is on.
    revision: &'m Revision,
    missing: BTreeMap<String, Resize>,
}

fn left_behind<'m, 'a>(
    observed: &Observed<'_>,
    templates: &'m Templates<'_>,
    members: &'m [Member<'a>],
) -> Vec<LeftBehind<'m, 'a>> {
    let mut wanted: BTreeMap<&str, Amounts> = BTreeMap::new();
    let mut found = Vec::new();
    for member in members.iter().filter(|member| is_at_rest(member)) {
        let pod = member.pod;
        let label = pod.labels.get(REVISION_HASH).unwrap_or_default();
        let Some(revision) = templates.by_label(label) else {
            continue;
        };
        if came_with_resources(pod, |name| revision.labels(name)) {
            continue;
        }
        let amounts = wanted
            .entry(label)
            .or_insert_with(|| Amounts::of(&revision.template));
        let missing = amounts.missing(pod, observed.options.vertical_scaling);
        if is_left(templates, pod, &missing) {
            found.push(LeftBehind {
                member,
                revision,
                missing,
            });
        }
    }
    found
}

/// What an update that broke off has kept a pod from having, which is about to move to this revision.
///
/// Whether it came to the one before with resources does not matter: this is asked once for each update.
pub(super) fn on_its_way(
    observed: &Observed<'_>,
    templates: &Templates<'_>,
    pod: &PodView,
    revision: &Revision,
) -> BTreeMap<String, Resize> {
    let scaling = observed.options.vertical_scaling;
    if !scaling.has_endpoint() || !is_written(pod) {
        return BTreeMap::new();
    }
    let mut missing = Amounts::of(&revision.template).missing(pod, scaling);
    if !is_left(templates, pod, &missing) {
        missing.clear();
    }
    missing
}

/// Is what a pod has in place of these amounts what some revision asks for?
fn is_left(templates: &Templates<'_>, pod: &PodView, missing: &BTreeMap<String, Resize>) -> bool {
    let mut all = templates.all();
    !missing.is_empty() && all.any(|one| Amounts::of(&one.template).left(pod, missing))
}

/// Has anybody asked for resources of the pod since it was made?
fn is_written(pod: &PodView) -> bool {
    pod.containers.iter().any(|container| container.written.any())
}

fn changes_in_place(observed: &Observed<'_>) -> bool {
    let strategy = &observed.set.spec.update_strategy;
    let in_place = |policy: &str| matches!(policy, "InPlaceIfPossible" | "InPlaceOnly");
    let rolling = strategy.rolling_update.as_ref();
    strategy.kind != "OnDelete"
        && rolling.is_some_and(|rolling| !rolling.paused && in_place(&rolling.pod_update_policy))
}

/// Not on its way to a revision or out of the set.
fn is_at_rest(member: &Member<'_>) -> bool {
    let pod = member.pod;
    matches!(member.state, State::None | State::PreparingNormal | State::Normal)
        && !member.specified
        && pod.annotations.get(INPLACE_GRACE).is_none()
        && is_written(pod)
}
