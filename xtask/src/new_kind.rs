//! `cargo xtask new-kind`: the kind of `fixtures/new-kind` in a work tree of its own, built, and with its tests.
//!
//! The tidy test holds that the patch applies, and what it touches. Here it is seen that nothing else has to
//! change: the reference is written anew, and the scenarios of the kind, its injected bug and the tests of all
//! kinds pass.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::tidy::PATCH;
use crate::workspace;

/// Tests that look at each kind, and those of the new one.
const TESTS: [&str; 6] = [
    "samples_",
    "every_subject_",
    "every_bug_",
    "reference::",
    "surface::",
    "crds::",
];

/// Builds and tests it. The work tree is removed if all is well.
pub(crate) fn run() -> Result<()> {
    let tree = workspace::target().join("new-kind");
    let at = tree.to_str().context("a path that is no text")?;
    // None is there at first.
    let _absent = git(&workspace::root(), &["worktree", "remove", "--force", at]);
    git(
        &workspace::root(),
        &["worktree", "add", "--force", "--detach", at, "HEAD"],
    )?;
    git(&tree, &["apply", "-C1", PATCH])?;
    cargo(
        &tree,
        &["UPDATE_EXPECT=1"],
        &["reference::the_reference_is_up_to_date"],
    )?;
    cargo(&tree, &[], &TESTS)?;
    let bug = ["--ignored", "injected_bugs::"];
    cargo(&tree, &["KRUISE_DST_BUG=SampleKeepsMessage"], &bug)?;
    git(&workspace::root(), &["worktree", "remove", "--force", at])
}

fn git(folder: &Path, arguments: &[&str]) -> Result<()> {
    let status = Command::new("git").args(arguments).current_dir(folder).status();
    let status = status.context("git is needed")?;
    ensure!(status.success(), "git {} failed", arguments.join(" "));
    Ok(())
}

/// Runs tests with these variables.
fn cargo(folder: &Path, variables: &[&str], tests: &[&str]) -> Result<()> {
    let variables = variables.iter().filter_map(|variable| variable.split_once('='));
    let status = Command::new(env!("CARGO"))
        .args(["test", "--workspace", "--test", "it", "--no-fail-fast", "--"])
        .args(tests)
        .envs(variables)
        .env("CARGO_INCREMENTAL", "0")
        .current_dir(folder)
        .status()?;
    ensure!(
        status.success(),
        "with a new kind, these tests fail: {}",
        tests.join(" ")
    );
    Ok(())
}
