//! Tests that do not begin because the time of the suite is over: `--begin-within`.
//!
//! Only the suite knows when a test begins: it ends such a test, and writes its name to a file in the cluster's folder.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};

/// As `tests/e2e/tests/it/late.rs` names it.
const FILE: &str = "not-begun";

/// Lets no test on the cluster in this folder begin after so many seconds from now, and forgets what an earlier run left out.
pub(super) fn limit(tests: &mut Command, folder: &Path, begin_within: Option<u64>) -> Result<()> {
    match std::fs::remove_file(folder.join(FILE)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => (),
    }
    if let Some(seconds) = begin_within {
        let until = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() + seconds;
        tests.env("KRUISE_E2E_BEGIN_UNTIL", until.to_string());
    }
    Ok(())
}

/// The tests that did not begin on the cluster in this folder.
pub(super) fn of(folder: &Path) -> Result<BTreeSet<String>> {
    match std::fs::read_to_string(folder.join(FILE)) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {FILE}")),
    }
}

/// Names what was left out of the tests that were to run; fails if that is all of them.
pub(super) fn report(left_out: &BTreeSet<String>, all: usize) -> Result<()> {
    if left_out.is_empty() {
        return Ok(());
    }
    println!(
        "\nLEFT OUT, because the time was over before they began: {} of {all}",
        left_out.len()
    );
    for name in left_out {
        println!("    {name}");
    }
    ensure!(left_out.len() < all, "the time was over before any test began");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_tests_may_be_left_out_and_not_all() {
        let two = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
        report(&BTreeSet::new(), 0).unwrap();
        report(&two, 3).unwrap();
        assert!(report(&two, 2).is_err());
    }
}
