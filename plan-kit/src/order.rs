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

/// Sorts candidates for an update: those that lose least go first.
pub fn sort_for_update(candidates: &mut [Candidate<'_>]) {
    candidates.sort_by_cached_key(update_key);
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

/// Sorts candidates for removal, first to go first. `zone_of` gives the value of a topology key on a node; `topology`
/// lists the keys of the template's spread constraints.
pub fn sort_for_removal<'n>(
    candidates: &mut Vec<Candidate<'_>>,
    topology: &[String],
    zone_of: &dyn Fn(&str, &str) -> Option<&'n str>,
) {
    let ranks = ranks(candidates, topology, zone_of);
    let mut ranked: Vec<(Candidate<'_>, f64)> = candidates.drain(..).zip(ranks).collect();
    ranked.sort_by(|(a, rank_a), (b, rank_b)| removal_order(a, *rank_a, b, *rank_b));
    candidates.extend(ranked.into_iter().map(|(candidate, _)| candidate));
}

fn removal_order(a: &Candidate<'_>, rank_a: f64, b: &Candidate<'_>, rank_b: f64) -> Ordering {
    let head = |c: &Candidate<'_>| {
        let pod = c.pod;
        (
            pod.node.is_some(),
            pod.phase,
            c.service.is_available(),
            pod.is_true("Ready"),
            deletion_cost(pod),
        )
    };
    head(a)
        .cmp(&head(b))
        .then(rank_b.total_cmp(&rank_a))
        .then_with(|| tail(a).cmp(&tail(b)))
}

/// Shortest Ready, most restarts, newest, name.
type Tail<'a> = (
    Option<Reverse<Timestamp>>,
    Reverse<i32>,
    Reverse<Option<Timestamp>>,
    &'a str,
);

/// What decides when everything weightier is equal.
fn tail<'a>(candidate: &Candidate<'a>) -> Tail<'a> {
    let pod = candidate.pod;
    (
        candidate.ready_since().map(Reverse),
        Reverse(candidate.restarts()),
        Reverse(pod.created),
        &pod.name,
    )
}

/// Order among pods of one node or zone: as for removal, without rank and availability.
fn local_order(a: &Candidate<'_>, b: &Candidate<'_>) -> Ordering {
    let head = |c: &Candidate<'_>| {
        (
            c.pod.node.is_some(),
            c.pod.phase,
            c.pod.is_true("Ready"),
            deletion_cost(c.pod),
        )
    };
    head(a).cmp(&head(b)).then_with(|| tail(a).cmp(&tail(b)))
}

/// How crowded each candidate's place is; the higher, the sooner it goes.
fn ranks<'n>(
    candidates: &[Candidate<'_>],
    topology: &[String],
    zone_of: &dyn Fn(&str, &str) -> Option<&'n str>,
) -> Vec<f64> {
    let mut by_node: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, candidate) in candidates.iter().enumerate() {
        by_node
            .entry(candidate.pod.node.as_deref().unwrap_or_default())
            .or_default()
            .push(index);
    }
    let mut same_node = vec![0.0; candidates.len()];
    for group in by_node.into_values() {
        give_ranks(
            group,
            |a, b| order_at(candidates, a, b),
            |left, _| left as f64 - 1.0,
            &mut same_node,
        );
    }
    if topology.is_empty() {
        return same_node;
    }
    let mut ranks = vec![0.0; candidates.len()];
    for key in topology {
        let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, candidate) in candidates.iter().enumerate() {
            if let Some(zone) = candidate.pod.node.as_deref().and_then(|node| zone_of(node, key)) {
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
                head_order(candidates, a, b)
                    .then(nodes)
                    .then_with(|| order_at(candidates, a, b))
            };
            give_ranks(group, order, |left, _| left as f64 * weight, &mut ranks);
        }
    }
    ranks
}

fn order_at(candidates: &[Candidate<'_>], a: usize, b: usize) -> Ordering {
    match (candidates.get(a), candidates.get(b)) {
        (Some(a), Some(b)) => local_order(a, b),
        _ => a.cmp(&b),
    }
}

fn head_order(candidates: &[Candidate<'_>], a: usize, b: usize) -> Ordering {
    let head = |index: usize| {
        candidates.get(index).map(|c| {
            (
                c.pod.node.is_some(),
                c.pod.phase,
                c.pod.is_true("Ready"),
                deletion_cost(c.pod),
            )
        })
    };
    head(a).cmp(&head(b))
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
        sort_for_removal(&mut candidates, &topology, &|node, key| match (node, key) {
            ("a1" | "a2" | "a3" | "a4", "zone") => Some("a"),
            ("b1" | "b2", "zone") => Some("b"),
            _ => None,
        });
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
        sort_for_update(&mut candidates);
        let names: Vec<_> = candidates.iter().map(|candidate| &*candidate.pod.name).collect();
        assert_eq!(names, ["unready", "young", "old"]);
    }
}
