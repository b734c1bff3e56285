//! Changing pods to the update revision, or back to the current one where a raised partition asks for that.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kruise_api::names::REVISION_HASH;
use kruise_plan_kit::{Why, lifecycle::State, order::sort_for_update, priority, revision::Revision};
use kruise_views::Labels;

use super::{
    members::{Member, Side},
    mover::{Movers, Updated, call_off},
    numbers::Numbers,
    observe::{Explain, Observed},
};

pub(super) fn update(
    observed: &Observed<'_>,
    movers: &mut Movers<'_, '_>,
    members: &[Member<'_>],
    numbers: Numbers,
    now: Timestamp,
) -> Updated {
    let mut updated = Updated::default();
    let back = numbers.update < 0;
    let (mover, side) = if back {
        (&mut movers.back, Side::New)
    } else {
        (&mut movers.forward, Side::Old)
    };
    let waiting = members.iter().filter(|member| member.side == Side::Old);
    if let Some(held) = strategy_holds(observed) {
        explain(observed, waiting, held, &mut updated);
        if observed.set.spec.update_strategy.kind == "OnDelete" {
            let spared = members.iter().filter(|member| member.side == Side::Old);
            call_off(observed, spared, now, &mut updated);
        }
        if observed.options.partition_rollback {
            let spared = members.iter().filter(|member| member.side == Side::New);
            call_off(observed, spared, now, &mut updated);
        }
        return updated;
    }
    if observed.options.partition_rollback {
        // Held on the way that is not gone any more.
        let spared = members.iter().filter(|member| member.side != side);
        call_off(observed, spared, now, &mut updated);
    }
    // Those that cannot move are called off here; whose turn it is shows only among the others.
    let able = mover.able(candidates(observed, members, side), numbers, &mut updated);
    let count = numbers.update.unsigned_abs() as usize;
    call_off(observed, able.iter().skip(count).copied(), now, &mut updated);
    let (chosen, limit) = choose(&able, members, mover.target(), numbers);
    // Of updated pods those that stay have nothing to wait for.
    let subject_count = if back { count } else { able.len() };
    if observed.explain == Explain::Yes {
        let chosen: BTreeSet<&str> = chosen.iter().map(|member| &*member.pod.name).collect();
        let rest = able
            .iter()
            .copied()
            .take(subject_count)
            .filter(|member| !chosen.contains(&*member.pod.name));
        explain(observed, rest, &limit, &mut updated);
    }
    mover.run(chosen, &mut updated);
    updated
}

fn strategy_holds(observed: &Observed<'_>) -> Option<&'static str> {
    let strategy = &observed.set.spec.update_strategy;
    if strategy.kind == "OnDelete" {
        return Some("not updated: the strategy is OnDelete");
    }
    strategy
        .rolling_update
        .as_ref()
        .is_some_and(|rolling| rolling.paused)
        .then_some("not updated: the update is paused")
}

fn explain<'m>(
    observed: &Observed<'_>,
    members: impl Iterator<Item = &'m Member<'m>>,
    text: &str,
    updated: &mut Updated,
) {
    if observed.explain == Explain::Yes {
        updated.why.extend(members.map(|m| Why {
            about: m.pod.name.to_string(),
            text: text.to_owned(),
        }));
    }
}

/// Pods of a side that may change, in the order in which they should.
fn candidates<'m, 'a>(observed: &Observed<'_>, members: &'m [Member<'a>], side: Side) -> Vec<&'m Member<'a>> {
    let mut sorted: Vec<&Member<'_>> = members
        .iter()
        .filter(|member| member.side == side && member.state != State::PreparingDelete && !member.specified)
        .collect();
    sort_for_update(&mut sorted, |member| member.candidate());
    if let Some(rolling) = &observed.set.spec.update_strategy.rolling_update {
        if let Some(strategy) = &rolling.priority_strategy {
            priority::prioritise(&mut sorted, |member| &member.pod.labels, strategy);
        }
        if !rolling.scatter_strategy.is_empty() {
            let all: Vec<&Labels> = members.iter().map(|member| &member.pod.labels).collect();
            sorted = priority::scatter(
                sorted,
                |member| &member.pod.labels,
                &all,
                &rolling.scatter_strategy,
            );
        }
    }
    sorted.sort_by_key(|member| member.state != State::PreparingUpdate);
    sorted
}

/// Takes candidates while the limits allow; says in plain words which limit ended it.
///
/// Pods out of service cost nothing, so those in service that users prefer do not hold them up: it is they that such pods
/// would wait for.
fn choose<'m, 'a>(
    candidates: &[&'m Member<'a>],
    members: &[Member<'_>],
    target: &Revision,
    numbers: Numbers,
) -> (Vec<&'m Member<'a>>, String) {
    let limit = numbers.update_max_unavailable;
    let is_on_target = |m: &Member<'_>| target.labels(m.pod.labels.get(REVISION_HASH).unwrap_or_default());
    let unavailable = |counts: &dyn Fn(&Member<'_>) -> bool| {
        let out = |m: &&Member<'_>| !m.service.is_available() && counts(m);
        members.iter().filter(out).count() as i32
    };
    let on_target = unavailable(&is_on_target);
    let mut out = unavailable(&|_| true);
    let mut chosen: Vec<&Member<'_>> = Vec::new();
    let mut held = None;
    for member in candidates.iter().take(numbers.update.unsigned_abs() as usize) {
        let spent = on_target + chosen.len() as i32 >= limit;
        if spent || (member.service.is_available() && out >= limit) {
            held.get_or_insert_with(|| {
                format!("waits: maxUnavailable is reached, {out} pods are out of service and {limit} may be")
            });
            continue;
        }
        out += i32::from(member.service.is_available());
        chosen.push(member);
    }
    let held = held.unwrap_or_else(|| "stays on its revision: the partition holds it".to_owned());
    (chosen, held)
}
