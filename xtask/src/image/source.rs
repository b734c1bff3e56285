//! The sources that are built: version, commit, date.

use std::process::Command;

use anyhow::{Context, Result, bail};
use jiff::Timestamp;

use crate::workspace;

/// What is built.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) version: String,
    /// The commit, with `-dirty` if files differ from it.
    pub(crate) commit: String,
    /// Date of the commit in seconds since 1970, or `SOURCE_DATE_EPOCH`.
    pub(crate) seconds: u64,
}

impl Source {
    /// The sources of this workspace.
    pub(crate) fn read() -> Result<Self> {
        let seconds = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(given) => given,
            Err(_) => git(&["log", "-1", "--format=%ct"])?,
        };
        let is_clean = git(&["status", "--porcelain"])?.is_empty();
        let commit = git(&["rev-parse", "HEAD"])?;
        Ok(Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: if is_clean { commit } else { commit + "-dirty" },
            seconds: seconds
                .parse()
                .with_context(|| format!("{seconds:?} is no date"))?,
        })
    }

    /// The date as text.
    pub(crate) fn date(&self) -> String {
        let seconds = i64::try_from(self.seconds).unwrap_or_default();
        Timestamp::from_second(seconds).map_or_else(|_| String::new(), |date| date.to_string())
    }
}

fn git(arguments: &[&str]) -> Result<String> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(workspace::root())
        .output()
        .context("cannot run git")?;
    if !output.status.success() {
        bail!(
            "git {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
