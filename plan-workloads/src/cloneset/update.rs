//! Updating pods to the update revision, or back to the current one where a raised partition asks for that.

use std::collections::BTreeSet;

use kruise_plan_kit::{
    Explain, Plan,
    lifecycle::State,
    order::sort_for_update,
    priority,
    rollout::{Pod, Rollout, Updater},
};
use kruise_views::Labels;

use super::numbers::Numbers;

/// Why a pod that is not among the next stays.
const PARTITION: &str = "stays on its revision: the partition holds it";
/// Why a pod waits that is neither next nor held.
const LATER: &str = "waits: its turn comes after others";

/// The updates that a plan may make.
pub(super) struct Updaters<'r> {
    /// To the update revision.
    pub(super) forward: Updater<'r>,
    /// To the current one.
    pub(super) back: Updater<'r>,
}

impl<'r> Updaters<'r> {
    pub(super) fn new(rollout: &'r Rollout<'r>) -> Self {
        Self {
            forward: Updater::new(rollout, &rollout.update),
            back: Updater::new(rollout, &rollout.current),
        }
    }

    /// Updates the pods that are next in order, and explains what keeps the others.
    pub(super) fn update(
        &mut self,
        rollout: &Rollout<'_>,
        pods: &[Pod<'_>],
        numbers: Numbers,
        plan: &mut Plan,
    ) {
        let back = numbers.update < 0;
        let updater = if back { &mut self.back } else { &mut self.forward };
        let cancel = |updated: bool, plan: &mut Plan| {
            let pods = pods.iter().filter(|pod| pod.updated == updated);
            plan.writes.extend(pods.filter_map(|pod| rollout.cancel(pod)));
        };
        if let Some(held) = rollout.strategy.held() {
            for pod in pods.iter().filter(|pod| !pod.updated) {
                rollout.explain(plan, pod, held);
            }
            if rollout.strategy.on_delete {
                cancel(false, plan);
            }
            if rollout.options.goes_back {
                cancel(true, plan);
            }
            return;
        }
        if rollout.options.goes_back {
            // Held on the way to the other revision.
            cancel(!back, plan);
        }
        let mut able = candidates(rollout, pods, back);
        if numbers.update != 0 {
            // Those that cannot be updated are cancelled here; which pods are next is decided among the others.
            able = updater.able(able, plan);
        }
        let count = numbers.update.unsigned_abs() as usize;
        let spared = able.iter().skip(count);
        plan.writes.extend(spared.filter_map(|pod| rollout.cancel(pod)));
        // Which pods the partition keeps does not depend on refusals, which may be old.
        let next = able.len().min(count);
        if let Some(next) = able.get_mut(..next) {
            rollout.put_refused_last(next, |pod| pod.view);
        }
        let (chosen, limit) = choose(&able, pods, updater, numbers, plan);
        if rollout.explain == Explain::Yes {
            // Of updated pods those that stay have nothing to wait for.
            let subject_count = if back { count } else { able.len() };
            let names: BTreeSet<&str> = chosen.iter().map(|pod| &*pod.view.name).collect();
            // The partition holds the last ones. Others that are not next are surplus to a surge.
            let partition = usize::try_from(rollout.budget.partition).unwrap_or_default();
            let kept_from = able.len().saturating_sub(partition).max(count);
            for (index, pod) in able.iter().take(subject_count).enumerate() {
                let text = match limit.as_str() {
                    _ if index >= kept_from => PARTITION,
                    "" => LATER,
                    limit => limit,
                };
                if !names.contains(&*pod.view.name) {
                    rollout.explain(plan, pod, text);
                }
            }
        }
        updater.run(chosen, plan);
    }
}

/// Pods that may change, of those that are `updated` or those that are not, in the order in which they should.
fn candidates<'m, 'a>(rollout: &Rollout<'_>, pods: &'m [Pod<'a>], updated: bool) -> Vec<&'m Pod<'a>> {
    let mut sorted: Vec<&Pod<'_>> = pods
        .iter()
        .filter(|pod| pod.updated == updated && pod.state != State::PreparingDelete && !pod.specified)
        .collect();
    sort_for_update(&mut sorted, |pod| pod.candidate());
    if let Some(strategy) = rollout.strategy.priority {
        priority::prioritise(&mut sorted, |pod| &pod.view.labels, strategy);
    }
    let scatter = rollout.strategy.scatter;
    if !scatter.is_empty() {
        let all: Vec<&Labels> = pods.iter().map(|pod| &pod.view.labels).collect();
        sorted = priority::scatter(sorted, |pod| &pod.view.labels, &all, scatter);
    }
    sorted.sort_by_key(|pod| pod.state != State::PreparingUpdate);
    sorted
}

/// Takes candidates while the limits allow; returns which limit ended it, in plain words; empty if none did.
///
/// Pods out of service cost nothing, so those in service that users prefer do not hold them up: it is they that
/// such pods would wait for. Nor do those that their budgets keep.
fn choose<'m, 'a>(
    candidates: &[&'m Pod<'a>],
    pods: &[Pod<'_>],
    updater: &mut Updater<'_>,
    numbers: Numbers,
    plan: &mut Plan,
) -> (Vec<&'m Pod<'a>>, String) {
    let limit = numbers.update_max_unavailable;
    let unavailable = |counts: &dyn Fn(&Pod<'_>) -> bool| {
        let out = |pod: &&Pod<'_>| !pod.service.is_available() && counts(pod);
        pods.iter().filter(out).count() as i32
    };
    let on_target = unavailable(&|pod| pod.is_on(updater.target));
    let mut out = unavailable(&|_| true);
    let mut chosen: Vec<&Pod<'_>> = Vec::new();
    let mut held = None;
    for pod in candidates.iter().take(numbers.update.unsigned_abs() as usize) {
        let spent = on_target + chosen.len() as i32 >= limit;
        if spent || (pod.service.is_available() && out >= limit) {
            held.get_or_insert_with(|| {
                format!("waits: maxUnavailable is reached, {out} pods are out of service and {limit} may be")
            });
            continue;
        }
        if !updater.may_update(pod, plan) {
            continue;
        }
        out += i32::from(pod.service.is_available());
        chosen.push(pod);
    }
    (chosen, held.unwrap_or_default())
}
