//! How tests share a cluster: `assets/turns.txt`.

use anyhow::{Result, bail, ensure};

use super::selection;

/// A line each: the turn, the whole name of a test, and the reason. Tests that are in no line share the cluster.
/// Those of one turn begin in this order.
const TURNS: &str = include_str!("../../assets/turns.txt");
/// More would make the suite wait for them.
const MOST_ALONE: usize = 30;
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

/// The turns of the tests that do not share a cluster with all others.
#[derive(Debug)]
pub(super) struct Turns(Vec<(&'static str, Turn)>);

impl Turns {
    /// Those of `assets/turns.txt`. Fails if a line names no known test.
    pub(super) fn of(known: &[String]) -> Result<Self> {
        let turns = read(TURNS)?;
        let unknown = turns
            .iter()
            .find(|(name, _)| !known.iter().any(|test| test == name));
        if let Some((name, _)) = unknown {
            bail!("turns.txt: there is no test {name}");
        }
        Ok(Self(turns))
    }

    /// Each of these tests with its turn, in the order in which they begin.
    pub(super) fn give(&self, tests: impl IntoIterator<Item = String>) -> Vec<(String, Turn)> {
        let place = |test: &str| self.0.iter().position(|(name, _)| *name == test);
        let mut given: Vec<_> = tests.into_iter().map(|test| (place(&test), test)).collect();
        given.sort();
        let turn = |place: Option<usize>| {
            place
                .and_then(|place| self.0.get(place))
                .map_or(Turn::Shared, |one| one.1)
        };
        given
            .into_iter()
            .map(|(place, test)| (test, turn(place)))
            .collect()
    }
}

fn read(text: &str) -> Result<Vec<(&str, Turn)>> {
    let mut turns: Vec<(&str, Turn)> = Vec::new();
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
        ensure!(
            turns.iter().all(|(other, _)| other != name),
            "turns.txt: twice: {name}"
        );
        turns.push((*name, turn));
    }
    let alone = turns
        .iter()
        .filter(|(name, turn)| *turn == Turn::Alone && !ELSEWHERE.iter().any(|of| name.starts_with(of)));
    let alone = alone.count();
    ensure!(
        alone <= MOST_ALONE,
        "turns.txt: {alone} tests need the cluster alone, more than {MOST_ALONE}"
    );
    Ok(turns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_gives_a_test_its_turn_and_its_place_and_others_share() {
        let turns = Turns(read("# a comment\nalone a::two crashes the manager\ngated a::one").unwrap());
        let given = turns.give(["a::one", "a::three", "a::two"].map(String::from));
        let given: Vec<(&str, Turn)> = given.iter().map(|(test, turn)| (test.as_str(), *turn)).collect();
        let expected = [
            ("a::three", Turn::Shared),
            ("a::two", Turn::Alone),
            ("a::one", Turn::Gated),
        ];
        assert_eq!(given, expected);
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
