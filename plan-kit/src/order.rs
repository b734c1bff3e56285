//! Which pods go first, when pods are removed and when they are updated. Every order ends in the pod's name, so it is
//! total: two planners choose alike.

use std::{
    cmp::{Ordering, Reverse},
    collections::BTreeMap,
};

use jiff::Timestamp;
use kruise_api::names::DELETION_COST;
use kruise_views::{Phase, PodView};

use crate::availability::Service;

/// A pod and what its place in an order depends on.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// The pod.
    pub pod: &'a PodView,
    /// Its service at this instant.
    pub service: Service,
}

impl Candidate<'_> {
    fn ready_since(&self) -> Option<Timestamp> {
        if !self.pod.is_true("Ready") {
            return None;
        }
        self.pod.condition("Ready").and_then(|ready| ready.since)
    }

    fn restarts(&self) -> i32 {
        self.pod
            .statuses
            .iter()
            .map(|status| status.restart_count)
            .max()
            .unwrap_or(0)
    }
}

/// Place in the update order, smallest first: unscheduled, not running, not Ready, shortest Ready, most restarts,
/// newest, name.
type UpdateKey<'a> = (
    bool,
    Phase,
    bool,
    Option<Reverse<Timestamp>>,
    Reverse<i32>,
    Reverse<Option<Timestamp>>,
    &'a str,
);

fn update_key<'a>(candidate: &Candidate<'a>) -> UpdateKey<'a> {
    let pod = candidate.pod;
    (
        pod.node.is_some(),
        pod.phase,
        pod.is_true("Ready"),
        candidate.ready_since().map(Reverse),
        Reverse(candidate.restarts()),
        Reverse(pod.created),
        &pod.name,
    )
}

/// Sorts for an update: pods whose update costs least come first. `of` gives the pod of an item.
pub fn sort_for_update<'a, T>(items: &mut [T], of: impl Fn(&T) -> Candidate<'a>) {
    items.sort_by_cached_key(|item| update_key(&of(item)));
}

/// `controller.kubernetes.io/pod-deletion-cost`: a signed 32-bit number in its shortest form; anything else counts 0.
pub fn deletion_cost(pod: &PodView) -> i32 {
    let Some(text) = pod.annotations.get(DELETION_COST) else {
        return 0;
    };
    let digits = text.strip_prefix('-').unwrap_or(text);
    let padded = digits.starts_with('+') || (digits.len() > 1 && digits.starts_with('0')) || text == "-0";
    if padded { 0 } else { text.parse().unwrap_or(0) }
}

/// Sorts for removal, first to go first. `of` gives the pod of an item, `zone_of` gives the value of a topology
/// key on a node, `topology` lists the keys of the template's spread constraints.
pub fn sort_for_removal<'a, 'n, T>(
    items: &mut Vec<T>,
    of: impl Fn(&T) -> Candidate<'a>,
    topology: &[String],
    zone_of: &dyn Fn(&str, &str) -> Option<&'n str>,
) {
    let traits: Vec<Traits<'_>> = items.iter().map(|item| Traits::of(&of(item))).collect();
    let ranks = ranks(&traits, topology, zone_of);
    let mut ranked: Vec<(T, Traits<'_>, f64)> = items
        .drain(..)
        .zip(traits)
        .zip(ranks)
        .map(|((item, traits), rank)| (item, traits, rank))
        .collect();
    ranked.sort_by(|(_, a, rank_a), (_, b, rank_b)| {
        a.worth()
            .cmp(&b.worth())
            .then(rank_b.total_cmp(rank_a))
            .then_with(|| a.tail.cmp(&b.tail))
    });
    items.extend(ranked.into_iter().map(|(item, ..)| item));
}

/// What decides a pod's place among those to be removed, read from the pod once.
struct Traits<'a> {
    node: Option<&'a str>,
    phase: Phase,
    ready: bool,
    cost: i32,
    available: bool,
    tail: Tail<'a>,
}

/// Shortest Ready, most restarts, newest, name.
type Tail<'a> = (
    Option<Reverse<Timestamp>>,
    Reverse<i32>,
    Reverse<Option<Timestamp>>,
    &'a str,
);

impl<'a> Traits<'a> {
    fn of(candidate: &Candidate<'a>) -> Self {
        let pod = candidate.pod;
        Self {
            node: pod.node.as_deref(),
            phase: pod.phase,
            ready: pod.is_true("Ready"),
            cost: deletion_cost(pod),
            available: candidate.service.is_available(),
            tail: (
                candidate.ready_since().map(Reverse),
                Reverse(candidate.restarts()),
                Reverse(pod.created),
                &pod.name,
            ),
        }
    }

    /// What weighs more than where the pod runs.
    fn worth(&self) -> (bool, Phase, bool, bool, i32) {
        (
            self.node.is_some(),
            self.phase,
            self.available,
            self.ready,
            self.cost,
        )
    }

    /// As [`Self::worth`], among pods of one node or zone.
    fn local_worth(&self) -> (bool, Phase, bool, i32) {
        (self.node.is_some(), self.phase, self.ready, self.cost)
    }

    fn local_order(&self, other: &Self) -> Ordering {
        self.local_worth()
            .cmp(&other.local_worth())
            .then_with(|| self.tail.cmp(&other.tail))
    }
}

/// How crowded each pod's place is; the higher, the sooner it is deleted.
fn ranks<'n>(
    pods: &[Traits<'_>],
    topology: &[String],
    zone_of: &dyn Fn(&str, &str) -> Option<&'n str>,
) -> Vec<f64> {
    let mut by_node: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, pod) in pods.iter().enumerate() {
        by_node
            .entry(pod.node.unwrap_or_default())
            .or_default()
            .push(index);
    }
    let mut same_node = vec![0.0; pods.len()];
    for group in by_node.into_values() {
        let order = |a: usize, b: usize| compare(pods, a, b, Traits::local_order);
        give_ranks(group, order, |left, _| left as f64 - 1.0, &mut same_node);
    }
    if topology.is_empty() {
        return same_node;
    }
    let mut ranks = vec![0.0; pods.len()];
    for key in topology {
        let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, pod) in pods.iter().enumerate() {
            if let Some(zone) = pod.node.and_then(|node| zone_of(node, key)) {
                groups.entry(zone).or_default().push(index);
            }
        }
        let weight = (groups.len() as f64 + 2.0).ln();
        let by_host = key == "kubernetes.io/hostname";
        for group in groups.into_values() {
            let order = |a: usize, b: usize| {
                let crowded = |index: usize| same_node.get(index).copied().unwrap_or(0.0);
                let nodes = if by_host {
                    Ordering::Equal
                } else {
                    crowded(b).total_cmp(&crowded(a))
                };
                compare(pods, a, b, |a, b| a.local_worth().cmp(&b.local_worth()))
                    .then(nodes)
                    .then_with(|| compare(pods, a, b, Traits::local_order))
            };
            give_ranks(group, order, |left, _| left as f64 * weight, &mut ranks);
        }
    }
    ranks
}

fn compare<'a>(
    pods: &[Traits<'a>],
    a: usize,
    b: usize,
    order: impl Fn(&Traits<'a>, &Traits<'a>) -> Ordering,
) -> Ordering {
    match (pods.get(a), pods.get(b)) {
        (Some(a), Some(b)) => order(a, b),
        _ => a.cmp(&b),
    }
}

/// Sorts a group and adds `rank(members left from this one on, size)` to each member.
fn give_ranks(
    mut group: Vec<usize>,
    order: impl Fn(usize, usize) -> Ordering,
    rank: impl Fn(usize, usize) -> f64,
    out: &mut [f64],
) {
    group.sort_by(|a, b| order(*a, *b));
    let size = group.len();
    for (place, index) in group.into_iter().enumerate() {
        if let Some(slot) = out.get_mut(index) {
            *slot += rank(size - place, size);
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kruise_views::{ConditionView, Phase, PodView, Truth};

    use super::{Candidate, deletion_cost, sort_for_removal, sort_for_update};
    use crate::availability::service;

    fn pod(name: &str, node: &str, phase: Phase, ready: bool, second: i64) -> PodView {
        PodView {
            name: name.into(),
            node: (!node.is_empty()).then(|| node.into()),
            phase,
            conditions: Box::new([ConditionView {
                kind: "Ready".into(),
                status: if ready { Truth::True } else { Truth::False },
                since: Timestamp::from_second(second).ok(),
                ..ConditionView::default()
            }]),
            ..PodView::default()
        }
    }

    fn removal(pods: &[PodView], topology: &[&str]) -> Vec<String> {
        let now = Timestamp::from_second(1_000_000).unwrap();
        let mut candidates: Vec<_> = pods
            .iter()
            .map(|pod| Candidate {
                pod,
                service: service(pod, 0, now),
            })
            .collect();
        let topology: Vec<String> = topology.iter().map(|&key| key.to_owned()).collect();
        // node "a1" stands in zone "a".
        let zone_of = |node: &str, key: &str| match (node, key) {
            ("a1" | "a2" | "a3" | "a4", "zone") => Some("a"),
            ("b1" | "b2", "zone") => Some("b"),
            _ => None,
        };
        sort_for_removal(&mut candidates, |candidate| *candidate, &topology, &zone_of);
        candidates
            .into_iter()
            .map(|candidate| candidate.pod.name.to_string())
            .collect()
    }

    #[test]
    fn unscheduled_then_pending_then_unready_pods_go_before_ready_ones() {
        let pods = [
            pod("ready", "n1", Phase::Running, true, 1),
            pod("unready", "n2", Phase::Running, false, 1),
            pod("pending", "n3", Phase::Pending, false, 1),
            pod("unscheduled", "", Phase::Pending, false, 1),
        ];
        assert_eq!(
            removal(&pods, &[]),
            ["unscheduled", "pending", "unready", "ready"]
        );
    }

    #[test]
    fn a_dear_pod_goes_last_among_ready_ones() {
        let mut pods = [
            pod("dear", "n1", Phase::Running, true, 1),
            pod("plain", "n2", Phase::Running, true, 1),
        ];
        pods[0].annotations = [("controller.kubernetes.io/pod-deletion-cost", "100")]
            .into_iter()
            .collect();
        assert_eq!(removal(&pods, &[]), ["plain", "dear"]);
    }

    #[test]
    fn a_cost_counts_only_in_its_shortest_form() {
        for (text, cost) in [
            ("100", 100),
            ("-5", -5),
            ("+5", 0),
            ("007", 0),
            ("x", 0),
            ("0", 0),
            ("3000000000", 0),
        ] {
            let annotations = [("controller.kubernetes.io/pod-deletion-cost", text)]
                .into_iter()
                .collect();
            assert_eq!(
                deletion_cost(&PodView {
                    annotations,
                    ..PodView::default()
                }),
                cost,
                "{text}"
            );
        }
    }

    #[test]
    fn crowded_nodes_give_pods_before_empty_ones() {
        let pods = [
            pod("alone", "n1", Phase::Running, true, 9),
            pod("pair-1", "n2", Phase::Running, true, 1),
            pod("pair-2", "n2", Phase::Running, true, 2),
        ];
        assert_eq!(removal(&pods, &[])[0], "pair-2");
    }

    #[test]
    fn of_four_in_one_zone_and_two_in_another_the_first_two_come_from_the_four() {
        let pods: Vec<PodView> = [
            ("p1", "a1"),
            ("p2", "a2"),
            ("p3", "a3"),
            ("p4", "a4"),
            ("p5", "b1"),
            ("p6", "b2"),
        ]
        .iter()
        .map(|(name, node)| pod(name, node, Phase::Running, true, 1))
        .collect();
        let order = removal(&pods, &["zone"]);
        assert!(
            order[..2]
                .iter()
                .all(|name| ["p1", "p2", "p3", "p4"].contains(&name.as_str())),
            "{order:?}"
        );
    }

    #[test]
    fn among_equals_the_name_decides_so_the_order_is_total() {
        let pods = [
            pod("b", "n1", Phase::Running, true, 1),
            pod("a", "n2", Phase::Running, true, 1),
        ];
        assert_eq!(removal(&pods, &[]), ["a", "b"]);
    }

    #[test]
    fn updates_start_with_pods_that_lose_least() {
        let pods = [
            pod("old", "n", Phase::Running, true, 1),
            pod("young", "n", Phase::Running, true, 5),
            pod("unready", "n", Phase::Running, false, 1),
        ];
        let now = Timestamp::from_second(10).unwrap();
        let mut candidates: Vec<_> = pods
            .iter()
            .map(|pod| Candidate {
                pod,
                service: service(pod, 0, now),
            })
            .collect();
        sort_for_update(&mut candidates, |candidate| *candidate);
        let names: Vec<_> = candidates.iter().map(|candidate| &*candidate.pod.name).collect();
        assert_eq!(names, ["unready", "young", "old"]);
    }
}
