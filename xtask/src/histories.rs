//! `cargo xtask histories`: simulation as fast as it gets.
//!
//! A usual release build spreads what histories do over a large executable. Here a first build counts how often each
//! branch is taken while it plays some, and a second one, of all crates as one unit, is laid out by these counts. What
//! is played, and what comes of it, is the same. Both builds take a quarter of an hour; what did not change is not
//! built again.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::workspace;

/// Histories whose branches are counted.
const COUNTED: &str = "120";

/// What to do with the executable.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Arguments of `kruise-dst`, after `--`.
    #[arg(last = true, default_values_t = ["run".to_owned()])]
    arguments: Vec<String>,
}

/// Builds twice, and hands over to the second one.
pub(crate) fn run(options: &Options) -> Result<()> {
    let compiler = Compiler::find()?;
    let folder = workspace::target().join("histories");
    let counts = folder.join("counts");
    let profile = folder.join("histories.profdata");
    let counting = compiler.build(
        &folder.join("counting"),
        &format!("-Cprofile-generate={}", counts.display()),
        "off",
    )?;
    if !is_newer(&profile, &counting) {
        compiler.count(&counting, &counts, &profile)?;
    }
    let fast = compiler.build(
        &folder.join("fast"),
        &format!("-Cprofile-use={}\u{1f}-Ctarget-cpu=native", profile.display()),
        "fat",
    )?;
    let status = Command::new(fast).args(&options.arguments).status()?;
    if !status.success() {
        bail!("kruise-dst ended with {status}");
    }
    Ok(())
}

/// The compiler of this workspace.
struct Compiler {
    /// What it builds for.
    host: String,
    /// Its program for counts of branches.
    profdata: PathBuf,
}

impl Compiler {
    fn find() -> Result<Self> {
        let version = told(&["-vV"])?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: "));
        let host = host.context("rustc does not say what it builds for")?.to_owned();
        let sysroot = told(&["--print", "sysroot"])?;
        let tools = Path::new(sysroot.trim_end()).join("lib/rustlib").join(&host);
        let profdata = tools.join("bin/llvm-profdata");
        if !profdata.exists() {
            bail!("llvm-profdata is missing: `rustup component add llvm-tools`");
        }
        Ok(Self { host, profdata })
    }

    /// Builds `kruise-dst` as one unit of code with flags for the compiler, between them cargo's separator; returns its
    /// path. Given a target, cargo leaves build scripts and macros alone.
    fn build(&self, folder: &Path, flags: &str, lto: &str) -> Result<PathBuf> {
        let status = Command::new(env!("CARGO"))
            .args([
                "build",
                "--release",
                "--package",
                "kruise-dst",
                "--target",
                &self.host,
            ])
            .arg("--target-dir")
            .arg(folder)
            .env("CARGO_ENCODED_RUSTFLAGS", flags)
            .env("CARGO_PROFILE_RELEASE_LTO", lto)
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1")
            .current_dir(workspace::root())
            .status()?;
        if !status.success() {
            bail!("kruise-dst does not build");
        }
        Ok(folder.join(&self.host).join("release/kruise-dst"))
    }

    /// Plays histories with the executable that counts, and puts the counts into one file.
    fn count(&self, counting: &Path, counts: &Path, profile: &Path) -> Result<()> {
        if counts.exists() {
            std::fs::remove_dir_all(counts)?;
        }
        // Threads would get in each other's way. A history that fails counts as well; it is for the other executable to tell.
        Command::new(counting)
            .args([
                "run",
                "--seconds",
                "600",
                "--failures",
                COUNTED,
                "--histories",
                COUNTED,
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        let status = Command::new(&self.profdata)
            .arg("merge")
            .arg("-o")
            .arg(profile)
            .arg(counts)
            .status()?;
        if !status.success() {
            bail!("the counts of branches cannot be merged");
        }
        Ok(())
    }
}

/// What the compiler says.
fn told(arguments: &[&str]) -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args(arguments)
        .current_dir(workspace::root())
        .output()?;
    Ok(String::from_utf8(output.stdout)?)
}

/// Was the first file written after the second?
fn is_newer(one: &Path, other: &Path) -> bool {
    let written = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    written(one) > written(other)
}
