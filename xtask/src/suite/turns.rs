//! How tests share a cluster: `assets/turns.txt`.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};

use super::selection;

/// A line each: the turn, the whole name of a test, and the reason. Tests that are in no line share the cluster.
const TURNS: &str = include_str!("../../assets/turns.txt");
/// More would make the suite wait for them.
const MOST_ALONE: usize = 130;
/// How the names of tests begin that are no part of a usual run.
const ELSEWHERE: [&str; 2] = [selection::OF_REAL_NODES, selection::OF_THE_CHART];

/// What else may run on the cluster of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Turn {
    /// Other tests of this turn; the manager has its default flags.
    Shared,
    /// Other tests of this turn; the manager has all feature gates on.
    Gated,
    /// No other test.
    Alone,
}

impl Turn {
    /// As tests are given it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Gated => "gated",
            Self::Alone => "alone",
        }
    }
}

/// The turns of tests by their names. Fails if a line names no known test.
pub(super) fn of(known: &[String]) -> Result<BTreeMap<&'static str, Turn>> {
    let turns = read(TURNS)?;
    let unknown = turns.keys().find(|name| !known.iter().any(|test| test == *name));
    if let Some(name) = unknown {
        bail!("turns.txt: there is no test {name}");
    }
    Ok(turns)
}

fn read(text: &str) -> Result<BTreeMap<&str, Turn>> {
    let mut turns = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        let [turn, name, ..] = words.as_slice() else {
            bail!("turns.txt: a line is a turn, the name of a test and a reason: {line}");
        };
        let turn = match *turn {
            "gated" => Turn::Gated,
            "alone" => Turn::Alone,
            _ => bail!("turns.txt: a turn is gated or alone: {line}"),
        };
        ensure!(
            turn == Turn::Gated || words.len() == 3,
            "turns.txt: no reason to be alone: {line}"
        );
        ensure!(turns.insert(*name, turn).is_none(), "turns.txt: twice: {name}");
    }
    let alone = turns
        .iter()
        .filter(|(name, turn)| **turn == Turn::Alone && !ELSEWHERE.iter().any(|of| name.starts_with(of)));
    let alone = alone.count();
    ensure!(
        alone <= MOST_ALONE,
        "turns.txt: {alone} tests need the cluster alone, more than {MOST_ALONE}"
    );
    Ok(turns)
}

/// The turn of a test.
pub(super) fn turn(turns: &BTreeMap<&str, Turn>, test: &str) -> Turn {
    turns.get(test).copied().unwrap_or(Turn::Shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_gives_a_test_its_turn_and_others_share() {
        let turns = read("# a comment\ngated a::one\nalone a::two crashes the manager").unwrap();
        assert_eq!(turn(&turns, "a::one"), Turn::Gated);
        assert_eq!(turn(&turns, "a::two"), Turn::Alone);
        assert_eq!(turn(&turns, "a::three"), Turn::Shared);
    }

    #[test]
    fn a_test_that_needs_a_cluster_alone_has_a_reason_and_few_do() {
        read(TURNS).unwrap();
        for bad in [
            "alone a::one",
            "gated",
            "late a::one why",
            "gated a::one\nalone a::one why",
        ] {
            read(bad).unwrap_err();
        }
        let many: Vec<String> = (0..=MOST_ALONE)
            .map(|number| format!("alone a::{number} why"))
            .collect();
        read(&many.join("\n")).unwrap_err();
    }
}
