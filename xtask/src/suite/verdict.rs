//! The result of a run of libtest, and of the repetition of its failed tests.
//!
//! A test that fails is repeated once, alone. If it passes then, it is *flaky*, which is reported and fails nothing; a
//! test that fails twice has failed.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

/// The failed tests that the output of libtest names, each of which must be one of `known`: tests print, too, and what
/// they print must not be taken for a verdict.
///
/// Read are the line of each test and the list at the end: a line may be torn by what something else prints to the
/// same terminal, both hardly.
pub(super) fn failed(output: &str, known: &[String]) -> BTreeSet<String> {
    let mut failed = BTreeSet::new();
    let mut listed = false;
    for line in output.lines() {
        let text = line.trim();
        if text == "failures:" {
            listed = true;
            continue;
        }
        listed &= text.is_empty() || line.starts_with("    ");
        let of_line = text
            .strip_prefix("test ")
            .and_then(|rest| rest.strip_suffix("FAILED"))
            .and_then(|rest| rest.trim_end().strip_suffix("..."))
            .map(|name| name.trim_end().trim_end_matches(" - should panic"));
        let name = of_line.or_else(|| listed.then_some(text));
        failed.extend(
            name.and_then(|name| known.iter().find(|test| *test == name))
                .cloned(),
        );
    }
    failed
}

/// Did libtest finish and report that tests failed? Without that line tests may not have run at all.
pub(super) fn is_complete(output: &str) -> bool {
    output.lines().any(|line| line.starts_with("test result: FAILED"))
}

/// How many tests libtest says that it runs. Fewer than were asked for are found if the sources have changed meanwhile.
pub(super) fn running(output: &str) -> Option<usize> {
    let counts = output.lines().filter_map(|line| line.strip_prefix("running "));
    let mut counts = counts.filter_map(|rest| rest.split_once(" test")?.0.parse().ok());
    counts.next()
}

/// Prints the result of the tests that failed at first; an error if one failed again.
pub(super) fn close(first: &BTreeSet<String>, again: &BTreeSet<String>, logs: &str) -> Result<()> {
    for name in first {
        if again.contains(name) {
            println!("FAILED twice: {name}");
        } else {
            println!("FLAKY: {name} failed, and passed when it was repeated alone");
        }
    }
    let flaky = first.difference(again).count();
    if again.is_empty() {
        println!("the suite passed; flaky tests: {flaky}; logs are in {logs}");
        return Ok(());
    }
    bail!(
        "the suite failed; failed twice: {}, flaky: {flaky}; logs are in {logs}",
        again.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "
running 4 tests
test a::one ... ok
test a::two ... FAILED
test a::torn ... something else printed here
FAILED
test a::panics - should panic ... FAILED
successes:

---- a::one stdout ----
failures:
    a::one of the things that a test may print
test a::none ... FAILED


failures:

---- a::two stdout ----
not within 60 s: the set is gone
    a::one

failures:
    a::two
    a::torn

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s
";

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn failed_tests_are_found_in_their_lines_and_in_the_list_and_nowhere_else() {
        let known = ["a::one", "a::two", "a::torn", "a::panics"].map(String::from);
        assert_eq!(failed(OUTPUT, &known), names(&["a::panics", "a::torn", "a::two"]));
        assert_eq!(failed("running 1 test\ntest a::one ... ok\n", &known), names(&[]));
    }

    #[test]
    fn a_run_says_how_many_tests_it_has() {
        assert_eq!(running(OUTPUT), Some(4));
        assert_eq!(running("running 1 test\n"), Some(1));
        assert_eq!(running("running late\nno tests\n"), None);
    }

    #[test]
    fn a_run_that_broke_off_after_a_failed_test_is_not_complete() {
        assert!(is_complete(OUTPUT));
        let (broken_off, _) = OUTPUT.split_once("test result:").unwrap();
        assert!(!is_complete(broken_off));
    }

    #[test]
    fn a_test_that_passes_the_second_time_is_flaky_and_one_that_fails_twice_fails_the_suite() {
        let first = names(&["a::one", "a::two"]);
        close(&first, &names(&[]), "logs").unwrap();
        let error = close(&first, &names(&["a::two"]), "logs")
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "the suite failed; failed twice: 1, flaky: 1; logs are in logs"
        );
    }
}
