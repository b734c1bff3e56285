//! Which tests are run where.

use anyhow::{Result, bail};

use super::Place;

/// Tests that cannot run on the playground, a line each: the whole name of a test and the reason.
const NOT_EMBEDDED: &str = include_str!("../../assets/not-in-the-playground.txt");
/// Tests that need a version of Kubernetes, a line each: the whole name of a test, the least minor version, and the reason.
const NOT_BEFORE: &str = include_str!("../../assets/not-before.txt");
/// How the names of the tests begin that need real nodes, and run on nothing else.
const OF_REAL_NODES: &str = "nodes::";
/// How the names of the tests begin that install the chart, and run on nothing else.
const OF_THE_CHART: &str = "from_nothing::";

/// Arguments that choose the tests whose names contain the filter and that can run there, on this minor version of
/// Kubernetes. Fails if there is none: a run of nothing would pass.
pub(super) fn arguments(
    place: &Place,
    filter: Option<&str>,
    minor: u32,
    tests: &[String],
) -> Result<Vec<String>> {
    let newer = newer(minor)?;
    let embedded = match place {
        Place::RealNodes(_) => return only(OF_REAL_NODES, filter, &newer, tests),
        Place::Chart(_) => return only(OF_THE_CHART, filter, &newer, tests),
        Place::Playground => skipped(NOT_EMBEDDED),
        Place::ControlPlane => newer,
    };
    check(&embedded, tests)?;
    let skipped: Vec<&str> = embedded
        .into_iter()
        .chain([OF_REAL_NODES, OF_THE_CHART])
        .collect();
    let wanted = filter.unwrap_or_default();
    let runs = |name: &String| name.contains(wanted) && !skipped.iter().any(|part| name.contains(part));
    if !tests.iter().any(runs) {
        bail!("no test that runs here has {wanted:?} in its name");
    }
    let arguments = skipped.into_iter().flat_map(|test| ["--skip", test]);
    Ok(filter.into_iter().chain(arguments).map(String::from).collect())
}

/// The tests whose names begin so and contain the filter; fails without one.
fn only(prefix: &str, filter: Option<&str>, newer: &[&str], tests: &[String]) -> Result<Vec<String>> {
    let filter = filter.unwrap_or_default();
    let runs = |name: &&String| name.starts_with(prefix) && !newer.contains(&name.as_str());
    let all = tests.iter().filter(runs);
    let chosen: Vec<String> = all.filter(|name| name.contains(filter)).cloned().collect();
    if chosen.is_empty() {
        bail!("no test of {prefix} has {filter:?} in its name");
    }
    Ok([vec!["--exact".into()], chosen].concat())
}

/// Fails unless each name is that of one test and part of no other's: a renamed test, or one that a name covers by
/// accident, would go unnoticed.
fn check(skipped: &[&str], tests: &[String]) -> Result<()> {
    for name in skipped {
        let found: Vec<&String> = tests.iter().filter(|test| test.contains(name)).collect();
        if found != [name] {
            bail!("a list of tests that are skipped: {name} must name one test, and stands for {found:?}");
        }
    }
    Ok(())
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
    fn on_real_nodes_run_their_own_tests_and_elsewhere_all_others() {
        let tests = [
            "nodes::a::one",
            "nodes::b::two",
            "rollout::nodes_one",
            "from_nothing::one",
        ]
        .map(String::from);
        let chosen = |filter| only(OF_REAL_NODES, filter, &["nodes::c"], &tests).unwrap();
        assert_eq!(chosen(None), ["--exact", "nodes::a::one", "nodes::b::two"]);
        assert_eq!(chosen(Some("one")), ["--exact", "nodes::a::one"]);
        assert!(only(OF_REAL_NODES, Some("three"), &[], &tests).is_err());
        let of_the_chart = only(OF_THE_CHART, Some("one"), &[], &tests).unwrap();
        assert_eq!(of_the_chart, ["--exact", "from_nothing::one"]);
        let older = only(OF_REAL_NODES, None, &["nodes::a::one"], &tests).unwrap();
        assert_eq!(older, ["--exact", "nodes::b::two"]);
        let elsewhere = arguments(&Place::ControlPlane, Some("one"), NEWEST, &tests).unwrap();
        assert_eq!(
            elsewhere,
            ["one", "--skip", "nodes::", "--skip", "from_nothing::"]
        );
        for none in ["nodes::", "from_nothing::", "two", "three"] {
            let error = arguments(&Place::ControlPlane, Some(none), NEWEST, &tests).unwrap_err();
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
        let tests = ["a::one", "a::two", "a::two_more"].map(String::from);
        check(&["a::one"], &tests).unwrap();
        for name in ["a::", "a::none", "a::two"] {
            let error = check(&[name], &tests).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
