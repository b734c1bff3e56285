//! How long the rest of a rollout takes.

use kruise_plan_kit::{
    Plan,
    lifecycle::State,
    outlook::{Facts, Observed, Outlook, outlook},
    rollout::{Pod, Rollout},
};

use super::numbers::{Limits, Numbers};

/// What is ahead of the set, after the plan has decided about its pods; `None` if there is no rollout.
pub(super) fn of(
    rollout: &Rollout<'_>,
    pods: &[Pod<'_>],
    (limits, numbers): (Limits, Numbers),
    min_ready_seconds: i32,
    plan: &Plan,
) -> Option<Outlook> {
    let back = numbers.update < 0;
    let stays = |pod: &&Pod<'_>| pod.state != State::PreparingDelete && !pod.specified;
    let old = pods.iter().filter(|pod| !pod.updated).filter(stays).count();
    if old == 0 && rollout.update.name == rollout.current.name {
        return None;
    }
    let has_arrived = |pod: &Pod<'_>| {
        if back {
            pod.is_on(&rollout.current)
        } else {
            pod.updated
        }
    };
    let number = |count: i32| usize::try_from(count).unwrap_or(0);
    let to_update = numbers.update.unsigned_abs() as usize;
    let kept = if back {
        0
    } else {
        old.saturating_sub(to_update).min(number(limits.partition))
    };
    let observed = Observed::of(rollout, pods, has_arrived);
    outlook(&Facts {
        to_update,
        kept,
        kept_by: "the partition",
        at_once: number(limits.max_unavailable.saturating_add(numbers.surge)),
        // A new pod is created as soon as the old one is being deleted.
        ends_first: false,
        ..Facts::of(rollout, observed, min_ready_seconds, !plan.writes_pods())
    })
}
