//! `cargo xtask e2e`: a cluster, the `kruise` binary, the suite of `tests/e2e` on both, and everything stopped again.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use kruise_e2e::process::{self, Signal};
use kruise_e2e::wait;

use crate::installation::{build_kruise, install};
use crate::lab::binaries::Binaries;
use crate::lab::cluster::{Cluster, Settings};
use crate::lab::components::Audit;
use crate::lab::folder;
use crate::{interrupt, workspace};

/// Longest time of the whole suite.
const LIMIT: Duration = Duration::from_hours(1);
/// How long an interrupted suite may take to end by itself.
const GRACE: Duration = Duration::from_secs(10);

/// What cannot be asked of the playground, a line each: the whole name of a test and the reason.
const NOT_EMBEDDED: &str = include_str!("../assets/not-in-the-playground.txt");

/// What to run, and on what.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Run only tests whose name contains this.
    filter: Option<String>,
    /// On the embedded API of `kruise playground` instead of a real control plane.
    #[arg(long)]
    playground: bool,
}

/// Runs the suite; fails if a test does.
pub(crate) fn run(options: &Options) -> Result<()> {
    let skipped = if options.playground {
        let skipped = skipped(NOT_EMBEDDED);
        check(&skipped, &names()?)?;
        skipped
    } else {
        Vec::new()
    };
    let binaries = Binaries::find_or_build()?;
    let kruise = build_kruise()?;
    let settings = |name| Settings {
        dir: folder(None, name),
        nodes: 10,
        port: None,
        audit: Audit::On,
    };
    let cluster = if options.playground {
        Cluster::up_embedded(&binaries, &kruise, &settings("playground"))?
    } else {
        Cluster::up(&binaries, &settings("e2e"))?
    };
    install(&cluster, &kruise)?;
    let mut tests = suite(&["--show-output"]);
    tests
        .args(&options.filter)
        .args(skipped.iter().flat_map(|test| ["--skip", test]))
        .env("KRUISE_E2E_KUBECONFIG", cluster.kubeconfig())
        .env("KRUISE_E2E_KUBECTL", binaries.program("kubectl"))
        .env("KRUISE_E2E_AUDIT_LOG", cluster.audit_log())
        .env("KRUISE_E2E_BIN", &kruise)
        .env("KRUISE_E2E_DIR", cluster.dir());
    if !status_of_group(&mut tests)?.success() {
        bail!("the suite failed; logs are in {}", cluster.dir().display());
    }
    Ok(())
}

/// The suite with these arguments.
fn suite(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["test", "--package", "kruise-e2e", "--test", "it", "--"])
        .args(arguments)
        .current_dir(workspace::root());
    command
}

/// The names of all tests of the suite.
fn names() -> Result<Vec<String>> {
    let listed = suite(&["--list"]).stderr(Stdio::inherit()).output()?;
    if !listed.status.success() {
        bail!("the suite cannot be listed");
    }
    let text = String::from_utf8(listed.stdout)?;
    let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
    Ok(names.map(str::to_owned).collect())
}

/// Fails unless each name is that of one test and is part of no other's: a test that got another name, or one that a
/// name covers by chance, would go unnoticed.
fn check(skipped: &[&str], tests: &[String]) -> Result<()> {
    for name in skipped {
        let found: Vec<&String> = tests.iter().filter(|test| test.contains(name)).collect();
        if found != [name] {
            bail!("not-in-the-playground.txt: {name} must name one test, and stands for {found:?}");
        }
    }
    Ok(())
}

/// The names of a list with reasons.
fn skipped(list: &str) -> Vec<&str> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_whitespace().next()).collect()
}

/// Runs a command and what it starts as one process group, which an interrupt ends as a whole.
fn status_of_group(command: &mut Command) -> Result<ExitStatus> {
    let mut child = command
        .process_group(0)
        .spawn()
        .context("cannot run cargo test")?;
    let ended = interrupt::wait_until("the tests end", LIMIT, || Ok(child.try_wait()?));
    if ended.is_err() {
        process::signal_group(child.id(), Signal::Term)?;
        let stopped = wait::until("the tests stop", GRACE, || Ok(child.try_wait()?));
        // cargo may be gone before what it started; without anybody left the signal fails, as it should.
        let _nobody_left = process::signal_group(child.id(), Signal::Kill);
        if stopped.is_err() {
            child.wait()?;
        }
    }
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

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
