//! Ready keys of one priority: namespaces take turns, each namespace is first in, first out.

use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub(crate) struct Lane<K> {
    lines: BTreeMap<Box<str>, Line<K>>,
    /// Namespaces with ready keys, by turn number.
    turns: BTreeMap<u64, Box<str>>,
    next_turn: u64,
    len: usize,
}

/// The keys of one namespace by arrival; never empty.
#[derive(Clone, Debug)]
struct Line<K> {
    turn: u64,
    keys: BTreeMap<u64, K>,
}

impl<K> Lane<K> {
    pub(crate) const fn new() -> Self {
        Self {
            lines: BTreeMap::new(),
            turns: BTreeMap::new(),
            next_turn: 0,
            len: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn push(&mut self, namespace: &str, arrival: u64, key: K) {
        self.len = self.len.saturating_add(1);
        if let Some(line) = self.lines.get_mut(namespace) {
            line.keys.insert(arrival, key);
        } else {
            let turn = self.next_turn_of(namespace);
            self.lines.insert(
                namespace.into(),
                Line {
                    turn,
                    keys: BTreeMap::from([(arrival, key)]),
                },
            );
        }
    }

    pub(crate) fn remove(&mut self, namespace: &str, arrival: u64) -> Option<K> {
        let line = self.lines.get_mut(namespace)?;
        let key = line.keys.remove(&arrival)?;
        self.len = self.len.saturating_sub(1);
        if line.keys.is_empty() {
            self.turns.remove(&line.turn);
            self.lines.remove(namespace);
        }
        Some(key)
    }

    pub(crate) fn pop(&mut self) -> Option<K> {
        let (_, namespace) = self.turns.first_key_value()?;
        let namespace = namespace.clone();
        let arrival = *self.lines.get(&namespace)?.keys.first_key_value()?.0;
        let key = self.remove(&namespace, arrival)?;
        if let Some(line) = self.lines.get(&namespace) {
            self.turns.remove(&line.turn);
            let turn = self.next_turn_of(&namespace);
            if let Some(line) = self.lines.get_mut(&namespace) {
                line.turn = turn;
            }
        }
        Some(key)
    }

    /// Moves the namespace behind all others.
    fn next_turn_of(&mut self, namespace: &str) -> u64 {
        let turn = self.next_turn;
        self.next_turn = turn.saturating_add(1);
        self.turns.insert(turn, namespace.into());
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(lane: &mut Lane<&'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| lane.pop()).collect()
    }

    #[test]
    fn namespaces_take_turns_and_keep_their_own_order() {
        let mut lane = Lane::new();
        for (arrival, key) in ["a/1", "a/2", "a/3", "b/1", "c/1", "b/2"].into_iter().enumerate() {
            lane.push(&key[..1], arrival as u64, key);
        }
        assert_eq!(lane.len(), 6);
        assert_eq!(drain(&mut lane), ["a/1", "b/1", "c/1", "a/2", "b/2", "a/3"]);
        assert_eq!(lane.len(), 0);
    }

    #[test]
    fn a_namespace_without_keys_rejoins_behind_the_others() {
        let mut lane = Lane::new();
        lane.push("a", 0, "a/1");
        lane.push("b", 1, "b/1");
        assert_eq!(lane.pop(), Some("a/1"));
        lane.push("a", 2, "a/2");
        assert_eq!(drain(&mut lane), ["b/1", "a/2"]);
    }

    #[test]
    fn removing_the_last_key_removes_the_turn() {
        let mut lane = Lane::new();
        lane.push("a", 0, "a/1");
        lane.push("b", 1, "b/1");
        assert_eq!(lane.remove("a", 0), Some("a/1"));
        assert_eq!(lane.remove("a", 0), None);
        assert_eq!(drain(&mut lane), ["b/1"]);
    }
}
