//! Which test begins next, and on which cluster.
//!
//! Two invariants: tests of different turns are never on one cluster at a time, nor two that need it alone; and a
//! test is handed out once. Each cluster begins with another turn, because tests that share a cluster need
//! processors and those that are alone mostly wait. It takes another turn when none of its own is left, so clusters
//! end at about the same time.

use std::collections::{BTreeMap, VecDeque};

use super::turns::Turn;

/// Tests that wait, and what is at work.
#[derive(Debug)]
pub(super) struct Schedule {
    waiting: BTreeMap<Turn, VecDeque<String>>,
    clusters: Vec<AtWork>,
    at_once: usize,
}

#[derive(Clone, Debug, Default)]
struct AtWork {
    turn: Option<Turn>,
    tests: usize,
}

/// What a cluster does next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It begins a test.
    Begin(String, Turn),
    /// It waits until one of its tests ends.
    Wait,
    /// Nothing: no test waits for a cluster, and none is at work on this one.
    Done,
}

/// In which a cluster looks for tests, repeated from the third cluster on.
const ORDERS: [[Turn; 3]; 3] = [
    [Turn::Shared, Turn::Gated, Turn::Alone],
    [Turn::Alone, Turn::Gated, Turn::Shared],
    [Turn::Gated, Turn::Alone, Turn::Shared],
];

impl Schedule {
    /// These tests on so many clusters, at most so many at once on each of them.
    pub(super) fn new(
        tests: impl IntoIterator<Item = (String, Turn)>,
        clusters: usize,
        at_once: usize,
    ) -> Self {
        let mut waiting: BTreeMap<Turn, VecDeque<String>> = BTreeMap::new();
        for (test, turn) in tests {
            waiting.entry(turn).or_default().push_back(test);
        }
        Self {
            waiting,
            clusters: vec![AtWork::default(); clusters],
            at_once: at_once.max(1),
        }
    }

    /// What the cluster of a number does next.
    pub(super) fn next(&mut self, cluster: usize) -> Next {
        let Some(at_work) = self.clusters.get_mut(cluster) else {
            return Next::Done;
        };
        if at_work.tests == 0 {
            let order = ORDERS.iter().cycle().nth(cluster).unwrap_or(&ORDERS[0]);
            let has_tests = |turn: &&Turn| self.waiting.get(turn).is_some_and(|tests| !tests.is_empty());
            at_work.turn = order.iter().find(has_tests).copied();
        }
        let Some(turn) = at_work.turn else {
            return Next::Done;
        };
        let room = if turn == Turn::Alone { 1 } else { self.at_once };
        if at_work.tests >= room {
            return Next::Wait;
        }
        match self.waiting.get_mut(&turn).and_then(VecDeque::pop_front) {
            Some(test) => {
                at_work.tests += 1;
                Next::Begin(test, turn)
            }
            None => Next::Wait,
        }
    }

    /// A test on the cluster of a number has ended.
    pub(super) fn ended(&mut self, cluster: usize) {
        if let Some(at_work) = self.clusters.get_mut(cluster) {
            at_work.tests = at_work.tests.saturating_sub(1);
        }
    }

    /// Takes back all tests that have not begun.
    pub(super) fn take_back(&mut self) -> Vec<String> {
        std::mem::take(&mut self.waiting)
            .into_values()
            .flatten()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(clusters: usize) -> Schedule {
        let tests = [Turn::Shared, Turn::Gated, Turn::Alone]
            .into_iter()
            .flat_map(|turn| (0..5).map(move |number| (format!("{}{number}", turn.name()), turn)));
        Schedule::new(tests, clusters, 2)
    }

    fn name(next: Next) -> String {
        match next {
            Next::Begin(name, _) => name,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_test_begins_once_and_turns_never_mix_on_a_cluster() {
        for clusters in 1..=4 {
            let mut schedule = schedule(clusters);
            let mut at_work: Vec<VecDeque<Turn>> = vec![VecDeque::new(); clusters];
            let mut begun = Vec::new();
            let mut done = vec![false; clusters];
            while done.contains(&false) {
                for cluster in 0..clusters {
                    match schedule.next(cluster) {
                        Next::Begin(test, turn) => {
                            begun.push(test);
                            at_work[cluster].push_back(turn);
                        }
                        Next::Wait => {
                            at_work[cluster].pop_front().unwrap();
                            schedule.ended(cluster);
                        }
                        Next::Done => done[cluster] = true,
                    }
                    let turns = &at_work[cluster];
                    assert!(turns.iter().all(|turn| Some(turn) == turns.front()), "{turns:?}");
                    assert!(turns.len() <= 2 && (turns.len() < 2 || turns[0] != Turn::Alone));
                }
            }
            begun.sort();
            begun.dedup();
            assert_eq!(begun.len(), 15);
        }
    }

    #[test]
    fn a_cluster_whose_own_turn_is_over_helps_with_another() {
        let mut schedule = schedule(2);
        assert_eq!(name(schedule.next(0)), "shared0");
        assert_eq!(name(schedule.next(1)), "alone0");
        assert_eq!(schedule.next(1), Next::Wait);
        for number in 1..5 {
            schedule.ended(1);
            assert_eq!(name(schedule.next(1)), format!("alone{number}"));
        }
        schedule.ended(1);
        assert_eq!(name(schedule.next(1)), "gated0");
    }

    #[test]
    fn what_is_taken_back_never_begins() {
        let mut schedule = schedule(1);
        schedule.next(0);
        assert_eq!(schedule.take_back().len(), 14);
        assert_eq!(schedule.next(0), Next::Wait);
        schedule.ended(0);
        assert_eq!(schedule.next(0), Next::Done);
    }
}
