//! `cargo xtask fuzz`: builds the targets of `fuzz/` with the instrumentation that libFuzzer follows, and runs them.
//!
//! These are the flags of cargo-fuzz without a sanitizer, so the toolchain of the project does. What targets find
//! is below `target/fuzz/finds`; a find that is repaired becomes a test, and a seed if it reaches what no other
//! does.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::suite::group::{self, Output};
use crate::{interrupt, workspace};

/// Which targets, and for how long.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Only this target; all of `fuzz/fuzz_targets` share the time otherwise.
    target: Option<String>,
    /// Time for all targets together.
    #[arg(long, default_value_t = 600)]
    seconds: u64,
    /// Only build them.
    #[arg(long)]
    build: bool,
}

/// Counters of edges and comparisons for code of the project and its dependencies; build scripts and macros have none,
/// because a target is named.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cllvm-args=-simplifycfg-branch-fold-threshold=0 \
    -Ccodegen-units=1 --cfg fuzzing";
/// Memory in MiB beyond which an input is a find, the longest input, and seconds that one may take.
const LIMITS: [&str; 3] = ["-rss_limit_mb=1024", "-max_len=16384", "-timeout=20"];

/// Runs each target for its share of the time; fails in the end if one found something.
pub(crate) fn run(options: &Options) -> Result<()> {
    interrupt::listen()?;
    let host = host()?;
    build(&host)?;
    if options.build {
        return Ok(());
    }
    let mut names = targets()?;
    if let Some(wanted) = &options.target {
        names.retain(|name| name == wanted);
        ensure!(!names.is_empty(), "no target is called {wanted:?}");
    }
    let seconds = (options.seconds / names.len() as u64).max(1);
    let mut found = Vec::new();
    for name in &names {
        if !hunt(name, &host, seconds)? {
            found.push(name);
        }
    }
    if !found.is_empty() {
        bail!("{found:?}: see target/fuzz/finds; give such a file to the target as its only argument");
    }
    Ok(())
}

/// Names of the targets, sorted.
fn targets() -> Result<Vec<String>> {
    let files = std::fs::read_dir(workspace::root().join("fuzz/fuzz_targets"))?;
    let name = |file: std::io::Result<std::fs::DirEntry>| {
        let path = file.ok()?.path();
        Some(path.file_stem()?.to_str()?.to_owned())
    };
    let mut names: Vec<String> = files.filter_map(name).collect();
    names.sort();
    Ok(names)
}

/// The triple of this machine.
fn host() -> Result<String> {
    let output = Command::new("rustc")
        .arg("-vV")
        .output()
        .context("cannot run rustc")?;
    let text = String::from_utf8(output.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not name its host")?.to_owned())
}

fn folder() -> PathBuf {
    workspace::target().join("fuzz")
}

fn build(host: &str) -> Result<()> {
    let status = Command::new(env!("CARGO"))
        .args([
            "build",
            "--release",
            "--bins",
            "--manifest-path",
            "fuzz/Cargo.toml",
            "--target",
            host,
        ])
        .arg("--target-dir")
        .arg(folder())
        .env("RUSTFLAGS", FLAGS)
        .current_dir(workspace::root())
        .status()?;
    ensure!(status.success(), "the targets do not build");
    Ok(())
}

/// True if the target found nothing.
fn hunt(name: &str, host: &str, seconds: u64) -> Result<bool> {
    println!("\n== {name}");
    let (corpus, finds) = (folder().join("corpus").join(name), folder().join("finds"));
    std::fs::create_dir_all(&corpus)?;
    std::fs::create_dir_all(&finds)?;
    let mut command = Command::new(folder().join(host).join("release").join(name));
    command
        .args(LIMITS)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-artifact_prefix={}/{name}-", finds.display()))
        .args(["-print_final_stats=1", "-use_value_profile=1"])
        .arg(corpus)
        .arg(workspace::root().join("fuzz/seeds").join(name))
        .current_dir(workspace::root());
    let deadline = Instant::now() + Duration::from_secs(seconds + 60);
    let ended = group::run(&mut command, deadline, Output::Shown)?;
    interrupt::check()?;
    Ok(ended.status.success())
}
