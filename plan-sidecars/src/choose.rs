//! Which pods are upgraded now.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use go_compat::{IntOrString, Rounding, partition};
use jiff::Timestamp;
use kruise_api::scatter::ScatterTerm;
use kruise_plan_kit::{
    Why,
    availability::service,
    injected::{Bug, is_injected},
    order::{Candidate, sort_for_update},
    priority,
};
use kruise_views::Labels;

use crate::{
    member::Member,
    observe::{Explain, Observed},
    sidecars::Sidecars,
};

/// What was decided about pods that are not of the specification.
#[derive(Default)]
pub(crate) struct Choice<'m, 'a> {
    /// More than images changed for them.
    pub(crate) stranded: Vec<&'m Member<'a>>,
    pub(crate) why: Vec<Why>,
    pub(crate) requeue: Option<Duration>,
}

/// What a plan does besides, or has begun.
#[derive(Default)]
pub(crate) struct Busy<'b> {
    /// Uids of pods that it writes already.
    pub(crate) pods: BTreeSet<&'b str>,
    /// Pods of the set that are being made again.
    pub(crate) gone: usize,
}

/// Chooses within the limits, and upgrades what it chooses: `upgrade` says whether it could.
pub(crate) fn choose<'m, 'a>(
    observed: &Observed<'_>,
    members: &'m [Member<'a>],
    sidecars: &Sidecars,
    busy: &Busy<'_>,
    upgrade: &mut dyn FnMut(&Member<'_>) -> bool,
    now: Timestamp,
) -> Choice<'m, 'a> {
    let set = &observed.set.metadata.name;
    let strategy = &observed.set.spec.update_strategy;
    let mut choice = Choice::default();
    let mut waiting: Vec<&Member<'_>> = Vec::new();
    let old: Vec<&Member<'_>> = members.iter().filter(|member| !member.updated).collect();
    for member in &old {
        if !member.selected {
            choice.explain(
                observed,
                member,
                "stays: updateStrategy.selector does not match it",
            );
        } else if let Some(left) = member.fresh_for(now) {
            choice.explain(observed, member, "waits: it has just been made");
            choice.requeue = choice.requeue.into_iter().chain([left]).min();
        } else if !member.upgradable {
            choice.explain(
                observed,
                member,
                "cannot be upgraded in place: more than images changed",
            );
            choice.stranded.push(member);
        } else if busy.pods.contains(&*member.pod.uid) {
            choice.explain(observed, member, "ends its last upgrade first");
        } else if member.is_on_its_way(set, sidecars) {
            choice.explain(observed, member, "waits: its last upgrade is still on its way");
        } else if let Some(left) = member.in_motion(set, now) {
            choice.explain(observed, member, "waits: another set has just changed it");
            choice.requeue = choice.requeue.into_iter().chain([left]).min();
        } else {
            waiting.push(member);
        }
    }
    let waiting = sort(observed, members, waiting, now);
    let count = members.len() as i32;
    let Ok(kept) = partition(strategy.partition.as_ref(), count) else {
        for member in waiting {
            choice.explain(observed, member, "stays: updateStrategy.partition cannot be read");
        }
        return choice;
    };
    let kept = if is_injected(Bug::SetPartitionIgnored) {
        0
    } else {
        kept
    };
    // Those that stay for other reasons are of the partition, too.
    let elsewhere = old.len() - waiting.len();
    let free = waiting.len()
        - waiting
            .len()
            .min((kept.max(0) as usize).saturating_sub(elsewhere));
    let (free, held) = waiting.split_at_checked(free).unwrap_or((&waiting, &[]));
    for member in held {
        choice.explain(observed, member, "stays: the partition holds it");
    }
    take(observed, members, free, busy, upgrade, &mut choice);
    choice
}

/// In the order in which pods are to change.
fn sort<'m, 'a>(
    observed: &Observed<'_>,
    members: &'m [Member<'a>],
    mut waiting: Vec<&'m Member<'a>>,
    now: Timestamp,
) -> Vec<&'m Member<'a>> {
    let strategy = &observed.set.spec.update_strategy;
    sort_for_update(&mut waiting, |member| Candidate {
        pod: member.pod,
        service: service(member.pod, 0, now),
    });
    if let Some(priorities) = &strategy.priority_strategy {
        priority::prioritise(&mut waiting, |member| &member.pod.labels, priorities);
    }
    if !strategy.scatter_strategy.is_empty() {
        let all: Vec<&Labels> = members.iter().map(|member| &member.pod.labels).collect();
        let labels = waiting.iter().map(|member| &member.pod.labels);
        let terms = expand(&strategy.scatter_strategy, labels);
        waiting = priority::scatter(waiting, |member| &member.pod.labels, &all, &terms);
    }
    let set = &observed.set.metadata.name;
    // What the set itself has broken is mended first, and what was refused is tried last: neither holds up the others.
    waiting.sort_by_cached_key(|member| (refused(observed, member), Reverse(member.is_out(set))));
    waiting
}

/// How often in a row a pod's write was refused.
fn refused(observed: &Observed<'_>, member: &Member<'_>) -> u32 {
    let refused = &observed.memory.refused;
    refused.get(&*member.pod.uid).copied().unwrap_or(0)
}

/// A term for each value that pods which wait have, where any value is meant. There is nothing to spread in a value of
/// one pod alone: such values are left out, for they may be as many as pods.
fn expand<'l>(terms: &[ScatterTerm], waiting: impl Iterator<Item = &'l Labels> + Clone) -> Vec<ScatterTerm> {
    let mut out = Vec::new();
    for term in terms {
        if term.value != "*" {
            out.push(term.clone());
            continue;
        }
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for value in waiting.clone().filter_map(|labels| labels.get(&term.key)) {
            *counts.entry(value).or_default() += 1;
        }
        let shared = counts.into_iter().filter(|(_, count)| *count > 1);
        out.extend(shared.map(|(value, _)| ScatterTerm {
            key: term.key.clone(),
            value: value.to_owned(),
        }));
    }
    out
}

/// Takes pods in their order while few enough are out of service. One that is out of service already costs nothing, but is
/// the set's from then on: those go before all that are in service, or the last of them would exceed the limit. Of one that
/// was refused before it is not known whether it will go; it waits for room like those in service, and takes none from them.
fn take(
    observed: &Observed<'_>,
    members: &[Member<'_>],
    free: &[&Member<'_>],
    busy: &Busy<'_>,
    upgrade: &mut dyn FnMut(&Member<'_>) -> bool,
    choice: &mut Choice<'_, '_>,
) {
    let set = &observed.set.metadata.name;
    let strategy = &observed.set.spec.update_strategy;
    let one = IntOrString::Int(1);
    let limit = strategy.max_unavailable.as_ref().unwrap_or(&one);
    let limit = limit.scaled_b(members.len() as i32, Rounding::Up).max(0) as usize
        + usize::from(is_injected(Bug::SetUnavailableOffByOne));
    // A twin that is told to idle restarts, whether or not its pod is to follow.
    let is_out = |member: &&Member<'_>| member.is_out(set) || busy.pods.contains(&*member.pod.uid);
    let mut out = busy.gone + members.iter().filter(is_out).count();
    let needs_room =
        |member: &Member<'_>| member.ready || (!member.is_out(set) && refused(observed, member) > 0);
    let (later, first): (Vec<&Member<'_>>, Vec<&Member<'_>>) =
        free.iter().partition(|member| needs_room(member));
    for member in first.into_iter().chain(later) {
        if needs_room(member) && out >= limit {
            let text =
                format!("waits: maxUnavailable is reached, {out} pods are out of service and {limit} may be");
            choice.explain(observed, member, &text);
            continue;
        }
        if upgrade(member) {
            out += usize::from(!member.is_out(set));
        } else {
            choice.explain(
                observed,
                member,
                "is not upgraded: an annotation cannot be merged",
            );
        }
    }
}

impl Choice<'_, '_> {
    fn explain(&mut self, observed: &Observed<'_>, member: &Member<'_>, text: &str) {
        if observed.explain == Explain::Yes {
            self.why.push(Why {
                about: member.about(),
                text: text.to_owned(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use kruise_api::scatter::ScatterTerm;
    use kruise_views::Labels;

    use super::expand;

    #[test]
    fn only_values_of_several_pods_become_terms() {
        let any = |key: &str| ScatterTerm {
            key: key.to_owned(),
            value: "*".to_owned(),
        };
        let pods: Vec<Labels> = (0..100)
            .map(|index| {
                let labels = [("pod", format!("p{index}")), ("zone", format!("z{}", index % 2))];
                labels.into_iter().collect()
            })
            .collect();
        let terms = expand(&[any("pod"), any("zone")], pods.iter());
        let values: Vec<&str> = terms.iter().map(|term| &*term.value).collect();
        assert_eq!(values, ["z0", "z1"]);
    }
}
