//! `cargo xtask hunt --minutes N`: what explores. No gate repeats it, because its result depends on luck, or
//! because it takes long.
//!
//! Each step is a command that people can run by themselves. The steps begin with another one each day, so that all
//! have their turn however short a hunt is; new seeds of what changed come first. What is found is kept: a failing
//! scenario becomes a case of `dst`.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::suite::group::{self, Output};
use crate::{interrupt, workspace};

/// How long, and which steps.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Nothing begins after so many minutes, and what runs then is ended.
    #[arg(long)]
    minutes: u64,
    /// Only steps whose name contains this.
    filter: Option<String>,
}

/// The share of the time in which new seeds are played first.
const SEEDS: u32 = 4;
/// The share of the fuzz targets.
const FUZZ: u32 = 6;
/// Where decisions are made: mutants of these are hunted in turn.
const PLANNERS: [&str; 7] = [
    "kruise-plan-workloads",
    "kruise-plan-sidecars",
    "kruise-plan-nodes",
    "kruise-plan-distribution",
    "kruise-plan-podstate",
    "kruise-plan-united",
    "kruise-plan-spread",
];
const DAY: u64 = 24 * 60 * 60;

/// A command with a name.
struct Step {
    name: String,
    program: PathBuf,
    arguments: Vec<String>,
    variables: Vec<(&'static str, String)>,
}

impl Step {
    fn new(name: &str, program: impl Into<PathBuf>, arguments: &str) -> Self {
        Self {
            name: name.into(),
            program: program.into(),
            arguments: arguments.split_whitespace().map(str::to_owned).collect(),
            variables: Vec::new(),
        }
    }
}

/// Runs steps until the time is over; fails after all if one failed.
pub(crate) fn run(options: &Options) -> Result<()> {
    interrupt::listen()?;
    build()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let time = Duration::from_secs(options.minutes.saturating_mul(60));
    let deadline = Instant::now() + time;
    let filter = options.filter.as_deref().unwrap_or_default();
    let mut steps = seeds(&changed()?, now, time / SEEDS);
    steps.extend(in_turn(others(now, time / FUZZ), now / DAY));
    steps.retain(|step| step.name.contains(filter));
    ensure!(!steps.is_empty(), "no step has {filter:?} in its name");
    let mut results = Vec::new();
    for step in &steps {
        let result = if Instant::now() < deadline {
            println!("\n== {}", step.name);
            take(step, deadline)?
        } else {
            "not reached"
        };
        results.push((step.name.as_str(), result));
    }
    println!();
    for (name, result) in &results {
        println!("{result:>11}  {name}");
    }
    if results.iter().any(|(_, result)| *result == FAILED) {
        bail!("something was found");
    }
    Ok(())
}

const FAILED: &str = "FAILED";

/// Runs one step; it is ended at the deadline.
fn take(step: &Step, deadline: Instant) -> Result<&'static str> {
    let mut command = Command::new(&step.program);
    command
        .args(&step.arguments)
        .envs(step.variables.iter().map(|(name, value)| (name, value)))
        .current_dir(workspace::root());
    let ended = group::run(&mut command, deadline, Output::Shown);
    interrupt::check()?;
    Ok(match ended {
        Ok(ended) if ended.status.success() => "nothing",
        Ok(_) if Instant::now() >= deadline => "cut short",
        Ok(_) => FAILED,
        Err(error) => {
            println!("{error:#}");
            FAILED
        }
    })
}

/// Everything with the features of the tests, as `.ci/run` does.
fn build() -> Result<()> {
    let status = Command::new(env!("CARGO"))
        .args(["build", "--workspace", "--bins", "--tests"])
        .current_dir(workspace::root())
        .status()?;
    ensure!(status.success(), "the workspace does not build");
    Ok(())
}

/// Files that changed within a week.
fn changed() -> Result<String> {
    let output = Command::new("git")
        .args(["log", "--since=1.week", "--format=", "--name-only"])
        .current_dir(workspace::root())
        .output()
        .context("cannot run git")?;
    ensure!(output.status.success(), "git log failed");
    Ok(String::from_utf8(output.stdout)?)
}

/// New seeds: half of the time those of subjects that changed, named in a path, and then those of all.
fn seeds(changed: &str, now: u64, time: Duration) -> Vec<Step> {
    let subjects = std::fs::read_dir(workspace::root().join("dst/src/subjects"));
    let mut names: Vec<String> = subjects
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| !name.contains('.') && changed.contains(&format!("/{name}")))
        .collect();
    names.sort();
    let half = time.as_secs() / 2;
    let each = half.checked_div(names.len() as u64).unwrap_or(0).max(1);
    let dst = workspace::target().join("debug/kruise-dst");
    // Far from the seeds that tests play, and different in each second.
    let first = now.saturating_mul(1_000);
    let of = names.iter().map(|name| {
        let arguments = format!("run --once --seed {first} --seconds {each} --of {name}");
        Step::new(&format!("new seeds of {name}"), &dst, &arguments)
    });
    let all = format!("run --seed {first} --seconds {half}");
    of.chain([Step::new("new seeds of all subjects", &dst, &all)])
        .collect()
}

fn others(now: u64, fuzzing: Duration) -> Vec<Step> {
    let xtask = workspace::target().join("debug/xtask");
    let dst = workspace::target().join("debug/kruise-dst");
    let planner = PLANNERS.iter().cycle().nth((now / DAY) as usize % PLANNERS.len());
    let planner = planner.copied().unwrap_or_default();
    let kruise = workspace::target().join("debug/kruise");
    let kruise = kruise.display();
    let mut properties = Step::new("random properties", env!("CARGO"), "test --workspace");
    // proptest's own names: ten times as many cases as it has by itself, drawn anew.
    properties.variables = vec![
        ("PROPTEST_CASES", "2560".into()),
        ("PROPTEST_RNG_SEED", now.to_string()),
    ];
    vec![
        Step::new(
            "measurements",
            env!("CARGO"),
            "test --workspace --test it -- --ignored --test-threads=1 measurements::",
        ),
        properties,
        Step::new(
            "fuzz targets",
            &xtask,
            &format!("fuzz --seconds {}", fuzzing.as_secs()),
        ),
        Step::new("injected bugs from the first seed", &dst, "injected-bugs"),
        Step::new("crashes after every write", &dst, "enumerate"),
        Step::new(
            "suite on the embedded API",
            &xtask,
            &format!("e2e --playground --workspace --kruise {kruise}"),
        ),
        Step::new(
            "tour on the control plane",
            &xtask,
            &format!("demo --kruise {kruise}"),
        ),
        Step::new("swap on a control plane", &xtask, "e2e --swap"),
        Step::new("suite on real nodes", &xtask, "e2e --real-nodes"),
        Step::new("chart on a real node", &xtask, "e2e --chart"),
        Step::new("suite on all versions", &xtask, "e2e --versions --workspace"),
        Step::new(
            &format!("mutants of {planner}"),
            env!("CARGO"),
            &format!("mutants --package {planner}"),
        ),
        Step::new("a new kind in one folder", &xtask, "new-kind"),
        Step::new(
            "warnings of the executable of images",
            env!("CARGO"),
            "clippy --package kruise --no-default-features --all-targets -- -D warnings",
        ),
    ]
}

/// The same steps, beginning with another one each day.
fn in_turn(mut steps: Vec<Step>, day: u64) -> Vec<Step> {
    let first = day as usize % steps.len().max(1);
    steps.rotate_left(first);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_that_changed_have_new_seeds_of_their_own_and_all_have_the_rest() {
        let steps = seeds(
            "plan-workloads/src/cloneset/scale.rs\n",
            5,
            Duration::from_secs(100),
        );
        let arguments: Vec<String> = steps.iter().map(|step| step.arguments.join(" ")).collect();
        assert_eq!(
            arguments,
            [
                "run --once --seed 5000 --seconds 50 --of cloneset",
                "run --seed 5000 --seconds 50"
            ]
        );
    }

    #[test]
    fn each_step_is_the_first_on_some_day() {
        let count = others(0, Duration::ZERO).len() as u64;
        let mut first: Vec<String> = (0..count)
            .map(|day| in_turn(others(0, Duration::ZERO), day)[0].name.clone())
            .collect();
        first.sort();
        first.dedup();
        assert_eq!(first.len() as u64, count);
    }
}
