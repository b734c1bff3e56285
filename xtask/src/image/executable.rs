//! The executables of an image: static, without symbols, and without paths of the machine that built them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::source::Source;
use super::toolchain::Toolchain;
use crate::workspace;

/// The target that is built without being asked for. Its C library, musl, is linked in and has a permissive
/// licence.
pub(super) const TARGET: &str = "x86_64-unknown-linux-musl";

/// Names of the executables, and the package of each.
pub(super) const MANAGER: Executable = Executable {
    name: "kruise",
    package: "kruise",
};
pub(super) const AGENT: Executable = Executable {
    name: "kruise-daemon",
    package: "kruise-agent",
};

/// An executable of the image.
pub(super) struct Executable {
    /// Name of its file.
    pub(super) name: &'static str,
    /// Package that it is a target of.
    pub(super) package: &'static str,
}

/// The arguments of cargo that choose what is in an image: nothing of a playground, and the allocator of
/// images.
pub(super) fn choice() -> Vec<String> {
    let of = |of: &dyn Fn(&str) -> String| [MANAGER, AGENT].map(|executable| of(executable.package));
    let allocators = of(&|package| format!("{package}/jemalloc"));
    let mut choice = of(&|package| format!("--package={package}")).to_vec();
    choice.push("--no-default-features".to_owned());
    choice.push(format!("--features={}", allocators.join(",")));
    choice
}

/// The bytes of the executables.
pub(super) struct Programs {
    /// The manager, with the commands of an installation.
    pub(super) manager: Vec<u8>,
    /// The agent of a node.
    pub(super) agent: Vec<u8>,
}

/// Builds the executables for a target, in this folder.
pub(super) fn build(target: &str, source: &Source, folder: &Path) -> Result<Programs> {
    let paths = [(workspace::root(), "/kruise"), (cargo_home()?, "/cargo")];
    let rust: Vec<String> = paths
        .iter()
        .map(|(path, name)| format!("--remap-path-prefix={}={name}", path.display()))
        .collect();
    // The folder of the build may be outside of the workspace.
    let c = paths.iter().map(|(path, name)| (path.as_path(), *name));
    let toolchain = Toolchain::of(target)?;
    let c: Vec<String> = c
        .chain([(folder, "/target")])
        .map(|(path, name)| format!("-ffile-prefix-map={}={name}", path.display()))
        .chain(toolchain.flags)
        .collect();
    let status = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--profile=image", "--bins"])
        .args(choice())
        .args(["--target", target])
        .arg("--target-dir")
        .arg(folder)
        .env("CARGO_ENCODED_RUSTFLAGS", rust.join("\u{1f}"))
        .env(format!("CFLAGS_{}", target.replace('-', "_")), c.join(" "))
        .envs(toolchain.variables)
        .env("KRUISE_COMMIT", &source.commit)
        .env("SOURCE_DATE_EPOCH", source.seconds.to_string())
        .current_dir(workspace::root())
        .status()?;
    if !status.success() {
        bail!(
            "kruise does not build for {target}; it needs `rustup target add {target}` and a C compiler for it, such as \
             the package musl-tools"
        );
    }
    let folders = paths.map(|(path, _)| path);
    let read = |executable: &Executable| {
        let path = folder.join(target).join("image").join(executable.name);
        let program = std::fs::read(&path).with_context(|| format!("no executable {}", path.display()))?;
        check(&program, &folders)?;
        Ok::<_, anyhow::Error>(program)
    };
    Ok(Programs {
        manager: read(&MANAGER)?,
        agent: read(&AGENT)?,
    })
}

/// Fails if the executable needs a loader or names one of these folders.
fn check(program: &[u8], folders: &[PathBuf]) -> Result<()> {
    ensure!(
        !needs_loader(program)?,
        "the executable is not static: it names a loader"
    );
    for folder in folders {
        let text = folder.display().to_string();
        let found = program
            .windows(text.len())
            .position(|bytes| bytes == text.as_bytes());
        if let Some(at) = found {
            let around = program.get(at..(at + 120).min(program.len())).unwrap_or_default();
            bail!(
                "a path of this machine is in the executable: {}",
                String::from_utf8_lossy(around)
            );
        }
    }
    Ok(())
}

/// Type of the program header that names a loader.
const INTERPRETER: u32 = 3;

/// Whether an ELF executable of 64 bits, least significant byte first, has a program header that names a
/// loader.
fn needs_loader(program: &[u8]) -> Result<bool> {
    let number = |at: usize, size: usize| -> Result<u64> {
        let bytes = program.get(at..at + size).context("the executable is cut off")?;
        let bytes = bytes.iter().rev();
        Ok(bytes.fold(0, |sum, byte| (sum << 8) | u64::from(*byte)))
    };
    ensure!(
        program.starts_with(b"\x7fELF\x02\x01"),
        "not an ELF executable of 64 bits"
    );
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    for index in 0..count {
        let at = usize::try_from(table + index * size)?;
        if number(at, 4)? == u64::from(INTERPRETER) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Where cargo keeps the sources of packages.
fn cargo_home() -> Result<PathBuf> {
    if let Some(home) = std::env::var_os("CARGO_HOME") {
        return Ok(home.into());
    }
    let home = std::env::var_os("HOME").context("HOME is not set")?;
    Ok(PathBuf::from(home).join(".cargo"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_executable_with_a_loader_is_refused() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(needs_loader(&own).unwrap(), "tests are linked dynamically");
        let error = check(&own, &[]).unwrap_err().to_string();
        assert!(error.contains("not static"), "{error}");
        assert!(needs_loader(b"\x7fELF\x02\x01").is_err() && needs_loader(b"#!/bin/sh").is_err());
    }

    #[test]
    fn an_executable_with_a_path_of_the_machine_is_refused() {
        let mut program = vec![0; 64];
        program[..6].copy_from_slice(b"\x7fELF\x02\x01");
        check(&program, &["/home/me".into()]).unwrap();
        program.extend(b"at /home/me/src/lib.rs");
        let error = check(&program, &["/home/me".into()]).unwrap_err().to_string();
        assert!(error.contains("/home/me/src/lib.rs"), "{error}");
    }
}
