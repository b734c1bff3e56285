//! Tells the executable what it is built with, for `kruise version`.
//!
//! Commit and date come from the environment (`KRUISE_COMMIT`, `SOURCE_DATE_EPOCH`), which `cargo xtask image` sets.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let printed = Command::new(rustc).arg("--version").output();
    let version = printed.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    println!("cargo::rustc-env=KRUISE_RUSTC={}", version.unwrap_or_default());
    println!(
        "cargo::rustc-env=KRUISE_TARGET={}",
        env::var("TARGET").unwrap_or_default()
    );
}
