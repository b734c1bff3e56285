//! The compiler of C and the linker for a target that is another processor than this machine's.
//!
//! Debian has no cross compiler for musl. Its cross compiler for the GNU C library serves, with the headers of musl
//! in the place of its own: packages `gcc-aarch64-linux-gnu` and `musl-dev:arm64`. The C library itself comes with
//! the target of the Rust compiler.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// What the build of another processor's executable needs: variables for Cargo, and flags of the compiler of C.
#[derive(Debug, Default)]
pub(super) struct Toolchain {
    pub(super) variables: Vec<(String, String)>,
    pub(super) flags: Vec<String>,
}

impl Toolchain {
    /// For a target. Nothing is needed for this machine's processor, nor if a variable names the compiler of C.
    pub(super) fn of(target: &str) -> Result<Self> {
        let processor = target.split('-').next().unwrap_or_default();
        let compiler = format!("CC_{}", target.replace('-', "_"));
        if processor == std::env::consts::ARCH || std::env::var_os(&compiler).is_some() {
            return Ok(Self::default());
        }
        let program = format!("{processor}-linux-gnu-gcc");
        let own = Command::new(&program)
            .arg("-print-file-name=include")
            .output()
            .with_context(|| format!("no {program}; install a C compiler for {target}, or set {compiler}"))?;
        let own = String::from_utf8(own.stdout).with_context(|| format!("{program} names no folder"))?;
        let musl = format!("/usr/include/{processor}-linux-musl");
        ensure!(
            Path::new(&musl).is_dir(),
            "no headers of musl in {musl}; install them, or set {compiler}"
        );
        let linker = format!(
            "CARGO_TARGET_{}_LINKER",
            target.replace('-', "_").to_ascii_uppercase()
        );
        let archiver = format!("AR_{}", target.replace('-', "_"));
        Ok(Self {
            variables: vec![
                (compiler, program.clone()),
                (linker, program),
                (archiver, format!("{processor}-linux-gnu-ar")),
            ],
            // Checked variants of functions are in the GNU C library only.
            flags: [
                "-nostdinc",
                "-isystem",
                musl.as_str(),
                "-isystem",
                own.trim(),
                "-U_FORTIFY_SOURCE",
            ]
            .map(str::to_owned)
            .to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_of_this_machine_needs_nothing() {
        let own = Toolchain::of(&format!("{}-unknown-linux-musl", std::env::consts::ARCH)).unwrap();
        assert!(own.variables.is_empty() && own.flags.is_empty());
    }

    #[test]
    fn a_processor_without_a_compiler_is_named_with_the_variable_that_helps() {
        let error = Toolchain::of("vax-unknown-linux-musl").unwrap_err();
        let text = format!("{error:#}");
        assert!(
            text.contains("vax-linux-gnu-gcc") && text.contains("CC_vax_unknown_linux_musl"),
            "{text}"
        );
    }
}
