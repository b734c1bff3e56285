//! How long the rest of a rollout takes.

use kruise_plan_kit::{
    Plan,
    outlook::{Facts, Observed, Outlook, outlook},
    rollout::Pod,
};

use super::{decision::Decision, members::Member, update::ordinals_of};

/// What is ahead of the set, after the plan has decided about its pods; `None` if there is no rollout.
pub(super) fn of(decision: &Decision<'_>, plan: &Plan) -> Option<Outlook> {
    let (rollout, limits) = (&decision.rollout, decision.limits);
    let candidates = decision.candidates();
    let chosen = ordinals_of(&candidates);
    let slots = decision.members.slots.iter();
    let outdated = slots.filter(|member| member.is_active() && decision.is_outdated(member));
    let (next, kept): (Vec<&Member<'_>>, Vec<_>) =
        outdated.partition(|member| chosen.contains(&member.ordinal));
    let rolls = rollout.update.name != rollout.current.name;
    if !rolls && next.is_empty() && kept.is_empty() {
        return None;
    }
    let active: Vec<Pod<'_>> = decision.slots().collect();
    let mut observed = Observed::of(rollout, &active, |pod| pod.updated);
    // Places whose pods are gone or about to go, and come back on the update revision.
    let leaving = candidates.iter().filter(|member| !member.is_active());
    let missing = usize::try_from(decision.missing_updated()).unwrap_or(0);
    observed.add_replaced(missing, leaving.map(|member| &**member.pod.view), rollout.now);
    outlook(&Facts {
        to_update: next.len(),
        kept: kept.len(),
        kept_by: "the partition",
        at_once: if limits.ordered {
            1
        } else {
            usize::try_from(limits.max_unavailable).unwrap_or(0)
        },
        ends_first: true,
        ..Facts::of(rollout, observed, limits.min_ready_seconds, !plan.writes_pods())
    })
}
