//! Which tests are run where.

use std::str::FromStr;

use anyhow::{Error, Result, bail, ensure};

use super::Place;

/// Tests that cannot run on the playground, a line each: the whole name of a test and the reason.
const NOT_EMBEDDED: &str = include_str!("../../assets/not-in-the-playground.txt");
/// Tests that need a version of Kubernetes, a line each: the whole name of a test, the least minor version, and the
/// reason.
const NOT_BEFORE: &str = include_str!("../../assets/not-before.txt");
/// How the names of the tests begin that need real nodes, and run on nothing else.
pub(super) const OF_REAL_NODES: &str = "nodes::";
/// How the names of the tests begin that install the chart, and run on nothing else.
pub(super) const OF_THE_CHART: &str = "from_nothing::";

/// A part of the tests, such as the second of five: `2/5`. The parts have all tests, each of them once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    number: usize,
    of: usize,
}

impl FromStr for Share {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let numbers = text
            .split_once('/')
            .and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Self { number, of }),
            _ => bail!("a share is a number of parts, such as 2/5: {text}"),
        }
    }
}

impl Share {
    /// These of the tests. Neighbours are alike, so each part gets some of all.
    pub(super) fn take(self, tests: Vec<String>) -> Result<Vec<String>> {
        let taken = tests.into_iter().skip(self.number - 1).step_by(self.of);
        let taken: Vec<String> = taken.collect();
        ensure!(!taken.is_empty(), "this share has no test");
        Ok(taken)
    }
}

/// The names of the tests that contain the filter and that can run there, on this minor version of Kubernetes.
/// Fails if there is none: a run of nothing would pass.
pub(super) fn tests(
    place: &Place,
    filter: Option<&str>,
    minor: u32,
    known: &[String],
) -> Result<Vec<String>> {
    let only = match place {
        Place::RealNodes(_) => Some(OF_REAL_NODES),
        Place::Chart(_) => Some(OF_THE_CHART),
        Place::ControlPlane | Place::Playground => None,
    };
    let skipped = match place {
        Place::Playground => skipped(NOT_EMBEDDED),
        _ => newer(minor)?,
    };
    choose(only, &skipped, filter.unwrap_or_default(), known)
}

/// The tests whose names contain the filter, without the skipped ones; with `only` of those whose names begin so,
/// otherwise of those that run everywhere.
fn choose(only: Option<&str>, skipped: &[&str], filter: &str, known: &[String]) -> Result<Vec<String>> {
    check(skipped, known)?;
    let runs_here = |name: &str| match only {
        Some(prefix) => name.starts_with(prefix),
        None => ![OF_REAL_NODES, OF_THE_CHART]
            .iter()
            .any(|prefix| name.starts_with(prefix)),
    };
    let runs = |name: &&String| name.contains(filter) && runs_here(name) && !skipped.contains(&name.as_str());
    let chosen: Vec<String> = known.iter().filter(runs).cloned().collect();
    if chosen.is_empty() {
        bail!("no test that runs here has {filter:?} in its name");
    }
    Ok(chosen)
}

/// Fails unless each name is that of a test: a renamed test would go unnoticed.
fn check(skipped: &[&str], known: &[String]) -> Result<()> {
    match skipped
        .iter()
        .find(|name| !known.iter().any(|test| test == *name))
    {
        Some(name) => bail!("a list of tests that are skipped: there is no test {name}"),
        None => Ok(()),
    }
}

/// The tests that need a newer version than this.
fn newer(minor: u32) -> Result<Vec<&'static str>> {
    let lines = NOT_BEFORE.lines().filter(|line| !line.starts_with('#'));
    let mut newer = Vec::new();
    for line in lines {
        let mut words = line.split_whitespace();
        let least = words
            .clone()
            .nth(1)
            .and_then(|version| version.strip_prefix("1."));
        match (words.next(), least.map(str::parse::<u32>)) {
            (Some(name), Some(Ok(least))) if words.count() > 1 => {
                newer.extend((least > minor).then_some(name));
            }
            _ => bail!(
                "not-before.txt: a line is the name of a test, a version such as 1.33, and a reason: {line}"
            ),
        }
    }
    Ok(newer)
}

/// The names of a list with reasons.
fn skipped(list: &str) -> Vec<&str> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_whitespace().next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Newer than anything that a test needs.
    const NEWEST: u32 = u32::MAX;

    #[test]
    fn older_versions_skip_what_they_lack_for_a_reason() {
        assert_eq!(newer(NEWEST).unwrap(), [""; 0]);
        assert_eq!(newer(34).unwrap(), [""; 0], "CI skips nothing");
        assert!(newer(30).unwrap().iter().any(|name| name.contains("cpu_changes")));
    }

    #[test]
    fn shares_have_every_test_once() {
        let tests: Vec<String> = (0..7).map(|number| number.to_string()).collect();
        let mut all = Vec::new();
        for share in ["1/3", "2/3", "3/3"] {
            all.extend(share.parse::<Share>().unwrap().take(tests.clone()).unwrap());
        }
        all.sort();
        assert_eq!(all, tests);
        assert!("8/8".parse::<Share>().unwrap().take(tests).is_err());
        for bad in ["0/3", "4/3", "3", "a/b", "1/0"] {
            bad.parse::<Share>().unwrap_err();
        }
    }

    #[test]
    fn where_containers_run_are_their_own_tests_and_elsewhere_all_others() {
        let known = [
            "nodes::a::one",
            "nodes::b::two",
            "rollout::nodes_one",
            "from_nothing::one",
        ]
        .map(String::from);
        let chosen = |only, skipped: &[&str], filter| choose(only, skipped, filter, &known);
        let nodes = Some(OF_REAL_NODES);
        assert_eq!(
            chosen(nodes, &[], "").unwrap(),
            ["nodes::a::one", "nodes::b::two"]
        );
        assert_eq!(chosen(nodes, &[], "one").unwrap(), ["nodes::a::one"]);
        assert_eq!(chosen(nodes, &["nodes::a::one"], "").unwrap(), ["nodes::b::two"]);
        assert_eq!(
            chosen(Some(OF_THE_CHART), &[], "one").unwrap(),
            ["from_nothing::one"]
        );
        assert_eq!(chosen(None, &[], "").unwrap(), ["rollout::nodes_one"]);
        for none in ["nodes::", "from_nothing::", "two", "three"] {
            let error = chosen(None, &[], none).unwrap_err();
            assert!(error.to_string().contains(none), "{error}");
        }
    }

    #[test]
    fn a_test_is_skipped_by_its_whole_name_and_for_a_reason() {
        let lines: Vec<&str> = NOT_EMBEDDED
            .lines()
            .filter(|line| !line.starts_with('#'))
            .collect();
        assert!(lines.iter().all(|line| line.split_whitespace().count() > 2));
        assert_eq!(skipped(NOT_EMBEDDED).len(), lines.len());
        let known = ["a::one", "a::two", "a::two_more"].map(String::from);
        check(&["a::one", "a::two"], &known).unwrap();
        for name in ["a::", "a::none"] {
            let error = check(&[name], &known).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
