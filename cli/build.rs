//! Tells the executables what they are built from, for `version`.
//!
//! Commit and date come from the environment (`KRUISE_COMMIT`, `SOURCE_DATE_EPOCH`), which `cargo xtask
//! image` sets, else from git. A development build does not ask git: it would be built anew after each
//! commit.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let rustc = output(&rustc, &["--version"]).unwrap_or_default();
    println!("cargo::rustc-env=KRUISE_RUSTC={rustc}");
    let target = env::var("TARGET").unwrap_or_default();
    println!("cargo::rustc-env=KRUISE_TARGET={target}");
    for (variable, question) in [
        ("KRUISE_COMMIT", &["rev-parse", "HEAD"][..]),
        ("SOURCE_DATE_EPOCH", &["log", "-1", "--format=%ct"]),
    ] {
        println!("cargo::rerun-if-env-changed={variable}");
        let given = env::var(variable).ok();
        if let Some(value) = given.or_else(|| of_clone(question)) {
            println!("cargo::rustc-env={variable}={value}");
        }
    }
}

/// What git says about the clone that this is built in.
fn of_clone(question: &[&str]) -> Option<String> {
    if env::var("PROFILE").is_ok_and(|profile| profile == "debug") {
        return None;
    }
    // These change with the commit. Cargo would run this again and again for a file that does not exist.
    for file in ["HEAD", "logs/HEAD"] {
        let path = output("git", &["rev-parse", "--git-path", file])?;
        if std::fs::exists(&path).is_ok_and(|exists| exists) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    output("git", question)
}

/// What a command prints, if it succeeds.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
