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
    Explain, Why,
    availability::service,
    injected::is_injected,
    order::{Candidate, sort_for_update},
    priority,
};
use kruise_views::Labels;

use crate::{pod::Pod, sidecars::Sidecars, snapshot::Snapshot};

/// What was decided about pods that are not of the specification.
#[derive(Default)]
pub(crate) struct Choice<'m, 'a> {
    /// More than images changed for them.
    pub(crate) stranded: Vec<&'m Pod<'a>>,
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

/// Upgrades a pod, or says why that cannot be done now.
pub(crate) type Upgrade<'u> = &'u mut dyn FnMut(&Pod<'_>) -> Result<(), String>;

/// Chooses within the limits, and upgrades what it chooses.
pub(crate) fn choose<'m, 'a>(
    snapshot: &Snapshot<'_>,
    pods: &'m [Pod<'a>],
    sidecars: &Sidecars,
    busy: &Busy<'_>,
    upgrade: Upgrade<'_>,
    now: Timestamp,
) -> Choice<'m, 'a> {
    let set = &snapshot.set.metadata.name;
    let mut choice = Choice::default();
    let mut waiting: Vec<&Pod<'_>> = Vec::new();
    let old: Vec<&Pod<'_>> = pods.iter().filter(|pod| !pod.updated).collect();
    for pod in &old {
        if !pod.selected && !is_injected("SetSelectorIgnored") {
            choice.explain(snapshot, pod, "stays: updateStrategy.selector does not match it");
        } else if !pod.upgradable && !is_injected("OtherChangesUpgraded") {
            // It is told so at once, however young it is: the set's status waits for that.
            let text = if pod.of_other_type {
                "has its sidecars under another upgradeType, of an earlier SidecarSet: only a new pod gets others"
            } else {
                "cannot be upgraded in place: more than images changed"
            };
            choice.explain(snapshot, pod, text);
            choice.stranded.push(pod);
        } else if let Some(left) = pod.fresh_for(now) {
            choice.explain(snapshot, pod, "waits: it has just been made");
            choice.requeue = choice.requeue.into_iter().chain([left]).min();
        } else if busy.pods.contains(&*pod.view.uid) {
            choice.explain(snapshot, pod, "ends its last upgrade first");
        } else if pod.is_on_its_way(set, sidecars) {
            choice.explain(snapshot, pod, "waits: its last upgrade is still on its way");
        } else if let Some(left) = pod.in_motion(set, now) {
            choice.explain(snapshot, pod, "waits: another set has just changed it");
            choice.requeue = choice.requeue.into_iter().chain([left]).min();
        } else {
            waiting.push(pod);
        }
    }
    let waiting = sort(snapshot, pods, waiting, now);
    let Some(kept) = kept(snapshot, pods.len()) else {
        for pod in waiting {
            choice.explain(snapshot, pod, "stays: updateStrategy.partition cannot be read");
        }
        return choice;
    };
    let kept = if is_injected("SetPartitionIgnored") {
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
    for pod in held {
        choice.explain(snapshot, pod, "stays: the partition holds it");
    }
    take(snapshot, pods, free, busy, upgrade, &mut choice);
    choice
}

/// How many of so many pods the partition keeps as they are; `None` if it cannot be read.
pub(crate) fn kept(snapshot: &Snapshot<'_>, count: usize) -> Option<i32> {
    let strategy = &snapshot.set.spec.update_strategy;
    partition(strategy.partition.as_ref(), count as i32).ok()
}

/// In the order in which pods are to change.
fn sort<'m, 'a>(
    snapshot: &Snapshot<'_>,
    pods: &'m [Pod<'a>],
    mut waiting: Vec<&'m Pod<'a>>,
    now: Timestamp,
) -> Vec<&'m Pod<'a>> {
    let strategy = &snapshot.set.spec.update_strategy;
    sort_for_update(&mut waiting, |pod| Candidate {
        pod: pod.view,
        service: service(pod.view, 0, now),
    });
    if let Some(priorities) = &strategy.priority_strategy {
        priority::prioritise(&mut waiting, |pod| &pod.view.labels, priorities);
    }
    if !strategy.scatter_strategy.is_empty() {
        let all: Vec<&Labels> = pods.iter().map(|pod| &pod.view.labels).collect();
        let labels = waiting.iter().map(|pod| &pod.view.labels);
        let terms = expand(&strategy.scatter_strategy, labels);
        waiting = priority::scatter(waiting, |pod| &pod.view.labels, &all, &terms);
    }
    let set = &snapshot.set.metadata.name;
    // What the set itself has broken is repaired first, and what was refused is tried last: neither holds up the
    // others.
    waiting.sort_by_cached_key(|pod| (refused(snapshot, pod), Reverse(pod.is_out(set))));
    waiting
}

/// How often in a row a pod's write was refused.
fn refused(snapshot: &Snapshot<'_>, pod: &Pod<'_>) -> u32 {
    let refused = &snapshot.memory.refused;
    refused.get(&*pod.view.uid).copied().unwrap_or(0)
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

/// Takes pods in their order while few enough are out of service. One that is out of service already costs nothing,
/// but is the set's from then on: those go before all that are in service, or the last of them would exceed the
/// limit. Of one that was refused before it is not known whether it will go; it waits for room like those in
/// service, and takes none from them.
fn take(
    snapshot: &Snapshot<'_>,
    pods: &[Pod<'_>],
    free: &[&Pod<'_>],
    busy: &Busy<'_>,
    upgrade: Upgrade<'_>,
    choice: &mut Choice<'_, '_>,
) {
    let set = &snapshot.set.metadata.name;
    let strategy = &snapshot.set.spec.update_strategy;
    let one = IntOrString::Int(1);
    let limit = strategy.max_unavailable.as_ref().unwrap_or(&one);
    let limit = limit.scaled_b(pods.len() as i32, Rounding::Up).max(0) as usize
        + usize::from(is_injected("SetUnavailableOffByOne"));
    // A twin that gets the empty image restarts, whether or not its pod is to follow.
    let is_out = |pod: &&Pod<'_>| pod.is_out(set) || busy.pods.contains(&*pod.view.uid);
    let mut out = busy.gone + pods.iter().filter(is_out).count();
    let needs_room = |pod: &Pod<'_>| pod.ready || (!pod.is_out(set) && refused(snapshot, pod) > 0);
    let (later, first): (Vec<&Pod<'_>>, Vec<&Pod<'_>>) = free.iter().partition(|pod| needs_room(pod));
    for pod in first.into_iter().chain(later) {
        if needs_room(pod) && out >= limit {
            let text =
                format!("waits: maxUnavailable is reached, {out} pods are out of service and {limit} may be");
            choice.explain(snapshot, pod, &text);
            continue;
        }
        match upgrade(pod) {
            Ok(()) => out += usize::from(!pod.is_out(set)),
            Err(why) => choice.explain(snapshot, pod, &why),
        }
    }
}

impl Choice<'_, '_> {
    fn explain(&mut self, snapshot: &Snapshot<'_>, pod: &Pod<'_>, text: &str) {
        if snapshot.explain == Explain::Yes {
            self.why.push(Why::new(pod.about(), text));
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
