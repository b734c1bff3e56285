//! The programs of the tests, as cargo builds them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::workspace;

/// What is built to have a program. Another selection of packages has other features, and so is another build.
#[derive(Clone, Copy, Debug)]
pub(super) enum Selection {
    /// Its package and what that needs.
    Package,
    /// All of the workspace: nothing, after `cargo test --workspace`.
    Workspace,
}

/// The integration tests of a package.
#[derive(Debug)]
pub(super) struct Program {
    path: PathBuf,
    /// Where the tests expect to run.
    dir: PathBuf,
}

impl Program {
    /// Builds the tests of the package whose folder this is, under the workspace's root.
    pub(super) fn build(folder: &str, package: &str, selection: Selection) -> Result<Self> {
        let dir = workspace::root().join(folder);
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args([
            "test",
            "--test",
            "it",
            "--no-run",
            "--message-format=json-render-diagnostics",
        ]);
        match selection {
            Selection::Package => cargo.args(["--package", package]),
            Selection::Workspace => cargo.arg("--workspace"),
        };
        let built = cargo
            .current_dir(workspace::root())
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run cargo test")?;
        ensure!(built.status.success(), "the tests of {package} cannot be built");
        let path = executable(&String::from_utf8_lossy(&built.stdout), &dir.join("Cargo.toml"))
            .with_context(|| format!("cargo built no tests of {package}"))?;
        Ok(Self { path, dir })
    }

    /// The tests with arguments of libtest.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.path);
        command.args(arguments).current_dir(&self.dir);
        command
    }

    /// The names of all tests, or with `arguments` of those that these choose.
    pub(super) fn names(&self, arguments: &[&str]) -> Result<Vec<String>> {
        let listed = self
            .command(&[&["--list"], arguments].concat())
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("cannot run {}", self.path.display()))?;
        ensure!(listed.status.success(), "the tests cannot be listed");
        let text = String::from_utf8(listed.stdout)?;
        let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
        Ok(names.map(str::to_owned).collect())
    }
}

/// The test program of the package with this manifest, among cargo's messages.
fn executable(messages: &str, manifest: &Path) -> Option<PathBuf> {
    let messages = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok());
    let mut programs =
        messages.filter(|message| message.manifest_path == manifest && message.target.name == "it");
    programs.find_map(|message| message.executable)
}

/// Of cargo's messages, the one about what was built.
#[derive(Deserialize)]
struct Message {
    manifest_path: PathBuf,
    target: Target,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_the_one_of_the_manifest() {
        let messages = r#"
   not a message
{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","target":{"name":"it"},"executable":"/t/a"}
{"reason":"compiler-artifact","manifest_path":"/w/b/Cargo.toml","target":{"name":"b"},"executable":null}
{"reason":"compiler-artifact","manifest_path":"/w/b/Cargo.toml","target":{"name":"it"},"executable":"/t/b"}
{"reason":"build-finished","success":true}"#;
        let of = |manifest: &str| executable(messages, Path::new(manifest));
        assert_eq!(of("/w/b/Cargo.toml"), Some("/t/b".into()));
        assert_eq!(of("/w/c/Cargo.toml"), None);
    }
}
