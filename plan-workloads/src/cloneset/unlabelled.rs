//! Pods with resources that an update left behind when it broke off get back what their revision asks for.
//!
//! Asked only where nothing is to be updated: what is to change anyway is given the right amounts by that.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kruise_api::names::{INPLACE_GRACE, REVISION_HASH};
use kruise_plan_kit::{Chain, inplace::Amounts, lifecycle::State};

use super::{members::Member, mover::Mover, numbers::Limits, observe::Observed, templates::Templates};

/// The updates, as many as may be out of service; one that restarts nothing needs no room.
pub(super) fn tend(
    observed: &Observed<'_>,
    templates: &Templates<'_>,
    members: &[Member<'_>],
    limits: Limits,
    now: Timestamp,
) -> Vec<Chain> {
    let scaling = observed.options.vertical_scaling;
    if !scaling.has_endpoint() || !changes_in_place(observed) {
        return Vec::new();
    }
    let mut wanted: BTreeMap<&str, Amounts> = BTreeMap::new();
    let mut chains = Vec::new();
    let serving = |member: &&Member<'_>| member.service.is_available();
    let mut out = (members.len() - members.iter().filter(serving).count()) as i32;
    for member in members.iter().filter(|member| is_at_rest(member)) {
        let label = member.pod.labels.get(REVISION_HASH).unwrap_or_default();
        let Some(revision) = templates.by_label(label) else {
            continue;
        };
        let amounts = wanted
            .entry(label)
            .or_insert_with(|| Amounts::of(&revision.template));
        let missing = amounts.missing(member.pod, scaling);
        let restarts = missing.values().any(|resize| resize.restarts);
        let room = limits.max_unavailable.max(i32::from(!restarts));
        if missing.is_empty() || out >= room {
            continue;
        }
        let mover = Mover::new(observed, revision, templates, now);
        if let Some(chain) = mover.give_back(member, missing) {
            out += i32::from(member.service.is_available());
            chains.push(chain);
        }
    }
    chains
}

fn changes_in_place(observed: &Observed<'_>) -> bool {
    let strategy = &observed.set.spec.update_strategy;
    let in_place = |policy: &str| matches!(policy, "InPlaceIfPossible" | "InPlaceOnly");
    let rolling = strategy.rolling_update.as_ref();
    strategy.kind != "OnDelete"
        && rolling.is_some_and(|rolling| !rolling.paused && in_place(&rolling.pod_update_policy))
}

/// In service as it is, and not on its way anywhere.
fn is_at_rest(member: &Member<'_>) -> bool {
    let pod = member.pod;
    matches!(member.state, State::None | State::Normal)
        && !member.specified
        && pod.annotations.get(INPLACE_GRACE).is_none()
        && pod.containers.iter().any(|container| container.written.any())
}
