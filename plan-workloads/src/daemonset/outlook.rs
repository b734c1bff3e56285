//! How long the rest of a rollout takes.

use std::cmp::Reverse;

use kruise_plan_kit::{
    Plan,
    outlook::{Facts, Observed, Outlook, outlook},
    rollout::Pod,
};

use super::decision::Decision;

/// What is ahead of the set, after the plan has decided about its pods; `None` if there is no rollout: with the
/// last old pod goes what tells one from the first pods of a set. `withheld` nodes get no pod.
pub(super) fn of(decision: &Decision<'_>, withheld: usize, plan: &Plan) -> Option<Outlook> {
    let (rollout, limits) = (&decision.rollout, decision.limits);
    let allowed = decision.allowed();
    let (mut to_update, mut kept, mut empty, mut leaving) = (0, 0, 0_usize, Vec::new());
    for place in decision.places.eligible() {
        match place.sides() {
            (old, new) if old.is_empty() && new.is_empty() => {
                // The last one of several decides when the node gets another.
                let leaves = place.members.iter().filter(|member| member.is_leaving());
                match leaves.max_by_key(|member| Reverse(member.pod.view.gone_by)) {
                    Some(member) => leaving.push(&**member.pod.view),
                    None => empty += 1,
                }
            }
            (old, new) if old.is_empty() || !new.is_empty() => {}
            _ if allowed.contains(place.name) => to_update += 1,
            _ => kept += 1,
        }
    }
    if !decision.old().any(|(place, _)| place.is_eligible()) {
        return None;
    }
    let active: Vec<Pod<'_>> = decision.active().collect();
    let mut observed = Observed::of(rollout, &active, |pod| pod.updated);
    // Nodes whose pods are gone or about to go, and that get others.
    observed.add_replaced(empty.saturating_sub(withheld), leaving, rollout.now);
    let (at_once, ends_first) = match limits.max_surge {
        0 => (limits.max_unavailable, true),
        surge => (surge, false),
    };
    let rolling = decision.set.spec.update_strategy.rolling_update.as_ref();
    let selects = rolling.is_some_and(|rolling| rolling.selector.is_some());
    outlook(&Facts {
        to_update,
        kept,
        kept_by: if selects {
            "the partition or rollingUpdate.selector"
        } else {
            "the partition"
        },
        at_once: usize::try_from(at_once).unwrap_or(0),
        ends_first,
        ..Facts::of(rollout, observed, limits.min_ready_seconds, !plan.writes_pods())
    })
}
