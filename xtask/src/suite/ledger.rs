//! Flaky tests: those that failed in a run and passed when they were repeated. `assets/flaky.txt`, which is
//! committed, remembers them, because a test that is flaky again and again hides faults.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::workspace;

/// The first lines of the file.
const HEAD: &str = "# Tests of tests/e2e that failed in a run and passed when they were repeated: how often, when last, and the name.\n\
                    # `cargo xtask e2e` writes it. A test that is here three times fails the suite, until it is repaired and its line removed.\n";
/// So often may a test have been flaky.
const MOST: u32 = 2;

/// How often a test was flaky, and the day of the last time.
type Known = BTreeMap<String, (u32, String)>;

/// Where the repository has it.
pub(super) fn path() -> PathBuf {
    workspace::root().join("xtask/assets/flaky.txt")
}

/// Writes down tests that were flaky on a day; fails if one of them was so too often.
pub(super) fn note(path: &Path, flaky: &BTreeSet<String>, day: &str) -> Result<()> {
    if flaky.is_empty() {
        return Ok(());
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut known = read(&text)?;
    for test in flaky {
        let (count, last) = known.entry(test.clone()).or_default();
        *count += 1;
        day.clone_into(last);
    }
    let mut text = HEAD.to_owned();
    for (test, (count, day)) in &known {
        writeln!(text, "{count} {day} {test}")?;
    }
    std::fs::write(path, text)?;
    println!("{} has them: commit it", path.display());
    let too_often = |test: &&String| known.get(*test).is_some_and(|(count, _)| *count > MOST);
    let too_often: Vec<&str> = flaky.iter().filter(too_often).map(String::as_str).collect();
    ensure!(
        too_often.is_empty(),
        "flaky more than {MOST} times, which counts as failed: {}",
        too_often.join(", ")
    );
    Ok(())
}

fn read(text: &str) -> Result<Known> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                [count, day, test] => Ok(((*test).to_owned(), (count.parse()?, (*day).to_owned()))),
                _ => anyhow::bail!("a line is a count, a day and a test: {line}"),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ledger_of_the_repository_can_be_read() {
        let text = std::fs::read_to_string(path()).unwrap();
        assert!(text.starts_with(HEAD));
        read(&text).unwrap();
    }

    #[test]
    fn the_third_time_is_a_failure() {
        let path = std::env::temp_dir().join(format!("kruise-flaky-{}", std::process::id()));
        std::fs::write(&path, HEAD).unwrap();
        let flaky = BTreeSet::from(["a::one".to_owned()]);
        note(&path, &flaky, "2026-01-01").unwrap();
        note(&path, &BTreeSet::from(["a::two".to_owned()]), "2026-01-02").unwrap();
        note(&path, &flaky, "2026-01-03").unwrap();
        let error = note(&path, &flaky, "2026-01-04").unwrap_err().to_string();
        assert!(error.contains("a::one") && !error.contains("a::two"), "{error}");
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, format!("{HEAD}3 2026-01-04 a::one\n1 2026-01-02 a::two\n"));
        std::fs::remove_file(path).unwrap();
    }
}
