//! `cargo xtask e2e`: a cluster, the `kruise` binary, the suite of `tests/e2e` on both, and everything stopped again.
//! What fails is repeated once, alone.

mod group;
mod verdict;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::installation::{build_kruise, install};
use crate::lab::binaries::Binaries;
use crate::lab::cluster::{Cluster, Settings};
use crate::lab::components::Audit;
use crate::lab::folder;
use crate::workspace;
use group::Ended;

/// Longest time of the whole suite, repetitions included.
const LIMIT: Duration = Duration::from_hours(1);

/// What cannot be asked of the playground, a line each: the whole name of a test and the reason.
const NOT_EMBEDDED: &str = include_str!("../../assets/not-in-the-playground.txt");

/// What to run, and on what.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Run only tests whose name contains this.
    filter: Option<String>,
    /// On the embedded API of `kruise playground` instead of a real control plane.
    #[arg(long)]
    playground: bool,
}

/// Runs the suite, and what failed once more; fails if a test fails twice.
pub(crate) fn run(options: &Options) -> Result<()> {
    let known = names()?;
    let skipped = if options.playground {
        let skipped = skipped(NOT_EMBEDDED);
        check(&skipped, &known)?;
        skipped
    } else {
        Vec::new()
    };
    let lab = Lab {
        binaries: Binaries::find_or_build()?,
        kruise: build_kruise()?,
        embedded: options.playground,
        deadline: Instant::now() + LIMIT,
    };
    let name = if options.playground { "playground" } else { "e2e" };
    let mut arguments = vec!["--show-output"];
    arguments.extend(options.filter.as_deref());
    arguments.extend(skipped.iter().flat_map(|test| ["--skip", test]));
    let first = failed(&lab.run(name, &arguments)?, &known)?;
    if first.is_empty() {
        return Ok(());
    }
    println!(
        "\nOnce more, each alone on a cluster of their own: {}",
        first.len()
    );
    let mut arguments = vec!["--show-output", "--test-threads=1", "--exact"];
    arguments.extend(first.iter().map(String::as_str));
    let again = format!("{name}-again");
    let again = failed(&lab.run(&again, &arguments)?, &known)?;
    verdict::close(&first, &again, &folder(None, name).display().to_string())
}

/// The tests that failed; an error if the run went wrong in a way that no test tells.
fn failed(ended: &Ended, known: &[String]) -> Result<BTreeSet<String>> {
    if ended.status.success() {
        return Ok(BTreeSet::new());
    }
    let failed = verdict::failed(&ended.output, known);
    if failed.is_empty() {
        bail!("the suite ended with {}, and no test has failed", ended.status);
    }
    Ok(failed)
}

/// What clusters are made of.
struct Lab {
    binaries: Binaries,
    kruise: PathBuf,
    embedded: bool,
    deadline: Instant,
}

impl Lab {
    /// The suite with these arguments, on a new cluster.
    fn run(&self, name: &str, arguments: &[&str]) -> Result<Ended> {
        let settings = Settings {
            dir: folder(None, name),
            nodes: 10,
            port: None,
            audit: Audit::On,
        };
        let cluster = if self.embedded {
            Cluster::up_embedded(&self.binaries, &self.kruise, &settings)?
        } else {
            Cluster::up(&self.binaries, &settings)?
        };
        install(&cluster, &self.kruise)?;
        let mut tests = suite(arguments);
        tests
            .env("KRUISE_E2E_KUBECONFIG", cluster.kubeconfig())
            .env("KRUISE_E2E_KUBECTL", self.binaries.program("kubectl"))
            .env("KRUISE_E2E_AUDIT_LOG", cluster.audit_log())
            .env("KRUISE_E2E_BIN", &self.kruise)
            .env("KRUISE_E2E_DIR", cluster.dir());
        group::run(&mut tests, self.deadline)
            .with_context(|| format!("the suite does not end; logs are in {}", cluster.dir().display()))
    }
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
