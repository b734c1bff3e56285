//! The result of the suite.
//!
//! A test that fails is repeated once, alone. If it passes then, it is *flaky*, which goes into the
//! [`super::ledger`]; a test that fails twice has failed. A suite of which a test did not begin has not passed.

use std::collections::BTreeSet;

use anyhow::{Result, bail, ensure};

use super::runner::{MOST_REPEATS, Outcomes};

/// The tests to repeat, unless so many failed that the suite has failed.
pub(super) fn to_repeat(outcomes: &Outcomes) -> Result<BTreeSet<String>> {
    let failed: BTreeSet<String> = outcomes.failed().map(str::to_owned).collect();
    if failed.len() > MOST_REPEATS {
        close(outcomes, failed.len(), 0);
        bail!(
            "{} tests failed, more than {MOST_REPEATS}, which are not repeated; not begun: {}",
            failed.len(),
            outcomes.not_begun.len()
        );
    }
    Ok(failed)
}

/// Prints the result, with what `repeats` showed; returns the flaky tests, or fails.
pub(super) fn judge(outcomes: &Outcomes, repeats: &Outcomes, logs: &str) -> Result<BTreeSet<String>> {
    let again: BTreeSet<&str> = repeats.failed().collect();
    let not_repeated = &repeats.not_begun;
    let mut flaky = BTreeSet::new();
    for test in outcomes.failed() {
        if again.contains(test) || not_repeated.iter().any(|one| one == test) {
            println!("FAILED twice, or not repeated: {test}");
        } else {
            println!("FLAKY: {test} failed, and passed when it was repeated alone");
            flaky.insert(test.to_owned());
        }
    }
    for test in &outcomes.not_begun {
        println!("NOT BEGUN: {test}");
    }
    let failed = outcomes.failed().count() - flaky.len();
    close(outcomes, failed, flaky.len());
    ensure!(failed == 0, "the suite failed; logs are in {logs}");
    ensure!(
        outcomes.not_begun.is_empty(),
        "the suite is incomplete: {} tests did not begin",
        outcomes.not_begun.len()
    );
    Ok(flaky)
}

/// The last line.
fn close(outcomes: &Outcomes, failed: usize, flaky: usize) {
    println!("flaky: {flaky}, not begun: {}", outcomes.not_begun.len());
    println!("{} passed, {failed} failed", outcomes.ended.len() - failed);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::runner::Outcome;
    use super::*;

    fn outcomes(ended: &[(&str, bool)], not_begun: &[&str]) -> Outcomes {
        let ended = ended.iter().map(|(test, passed)| Outcome {
            test: (*test).into(),
            passed: *passed,
            took: Duration::ZERO,
        });
        Outcomes {
            ended: ended.collect(),
            not_begun: not_begun.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn a_test_that_passes_the_second_time_is_flaky_and_one_that_fails_twice_fails_the_suite() {
        let first = outcomes(&[("a", false), ("b", false), ("c", true)], &[]);
        assert_eq!(to_repeat(&first).unwrap().len(), 2);
        let flaky = judge(&first, &outcomes(&[("a", true), ("b", true)], &[]), "logs").unwrap();
        assert_eq!(flaky.len(), 2);
        judge(&first, &outcomes(&[("a", true), ("b", false)], &[]), "logs").unwrap_err();
        judge(&first, &outcomes(&[("a", true)], &["b"]), "logs").unwrap_err();
    }

    #[test]
    fn a_suite_of_which_a_test_did_not_begin_is_incomplete() {
        let error = judge(&outcomes(&[("a", true)], &["b"]), &Outcomes::default(), "logs").unwrap_err();
        assert!(error.to_string().contains("incomplete"), "{error}");
    }

    #[test]
    fn many_failed_tests_are_not_repeated() {
        let names: Vec<String> = (0..=MOST_REPEATS).map(|number| number.to_string()).collect();
        let failed: Vec<(&str, bool)> = names.iter().map(|name| (name.as_str(), false)).collect();
        to_repeat(&outcomes(&failed, &[])).unwrap_err();
        assert_eq!(
            to_repeat(&outcomes(&failed[1..], &[])).unwrap().len(),
            MOST_REPEATS
        );
    }
}
