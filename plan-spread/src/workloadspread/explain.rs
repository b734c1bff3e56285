//! Why pods are where they are, in words.

use std::collections::BTreeMap;

use kruise_api::workloadspread::{SubsetStatus, WorkloadSpread, WorkloadSpreadStatus};
use kruise_plan_kit::{
    Why,
    spread::{CREATING, DELETING},
};

use super::{
    adaptive::{mark, waits_for_node},
    groups::{Group, Place},
};

/// A line for the target, and one for each subset.
pub(super) fn subsets(
    spread: &WorkloadSpread,
    status: &WorkloadSpreadStatus,
    limits: &[Option<i32>],
) -> Vec<Why> {
    let target = spread.spec.target_ref.as_ref();
    let target = target.map(|target| {
        let text = format!("spreads the pods of {} {}", target.kind, target.name);
        Why::of_set(text)
    });
    let subsets = status.subset_statuses.iter().zip(limits);
    let lines = subsets.map(|(subset, limit)| {
        let versions = status.versioned_subset_statuses.values().flatten();
        let same: Vec<&SubsetStatus> = versions.filter(|one| one.name == subset.name).collect();
        Why::of_set(line(subset, &same, *limit))
    });
    target.into_iter().chain(lines).collect()
}

fn line(subset: &SubsetStatus, versions: &[&SubsetStatus], limit: Option<i32>) -> String {
    let SubsetStatus {
        name,
        replicas,
        missing_replicas,
        ..
    } = subset;
    let mut text = match limit {
        Some(limit) => {
            format!("subset {name} has {replicas} pods of {limit} at most, {missing_replicas} are missing")
        }
        None => format!("subset {name} has {replicas} pods, and takes any number"),
    };
    let creating: usize = versions.iter().map(|one| one.creating_pods.len()).sum();
    let deleting: usize = versions.iter().map(|one| one.deleting_pods.len()).sum();
    for (number, what, life) in [(creating, "created", CREATING), (deleting, "deleted", DELETING)] {
        if number > 0 {
            let seconds = life.as_secs();
            text = format!("{text}; {number} are being {what}, which counts for {seconds} s");
        }
    }
    if let Some(mark) = mark(subset) {
        let since = mark
            .last_transition_time
            .map_or_else(String::new, |since| format!(" since {since}"));
        text.push_str("; it takes no new pods");
        text.push_str(&since);
        text.push_str(", because some found no node, and is tried again after 300 s");
    }
    text
}

/// A line for each active pod.
pub(super) fn pods(
    spread: &WorkloadSpread,
    groups: &BTreeMap<String, Group<'_>>,
    costs: &BTreeMap<Box<str>, i64>,
) -> Vec<Why> {
    let subset = |index: usize| {
        let subset = spread.spec.subsets.get(index);
        subset.map_or("", |subset| subset.name.as_str())
    };
    let pods = groups.iter().flat_map(|(version, group)| {
        let active = group.pods.iter().filter(|(pod, _)| pod.is_active());
        active.map(move |(pod, place)| (version, *pod, *place))
    });
    let lines = pods.map(|(version, pod, place)| {
        let mut text = match place {
            Place::Subset(index) => format!("is in subset {} of version {version}", subset(index)),
            Place::Removed => "is in a subset that was removed".to_owned(),
            Place::Unmanaged if pod.node.is_none() => {
                "is in no subset, and has no node by which one could be found".to_owned()
            }
            Place::Unmanaged => "is in no subset: none fits its node".to_owned(),
            Place::Unread => "is in no subset yet: it has to be read first".to_owned(),
        };
        if let Some(cost) = costs.get(&pod.uid) {
            let meaning = if *cost < 0 {
                "it goes before others"
            } else {
                "it stays longer the higher it is"
            };
            text = format!("{text}; deletion cost {cost}: {meaning}");
        }
        if waits_for_node(pod) {
            text += match spread.spec.reschedule_after() {
                Some(_) => "; waits for a node, and moves if it waits too long",
                None => "; waits for a node, and does not move",
            };
        }
        Why::new(&*pod.name, text)
    });
    lines.collect()
}
