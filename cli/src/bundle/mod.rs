//! `kubectl-kruise bundle`: facts about an installation and its objects for those who help with it, without
//! secrets.
//!
//! # What it promises
//! - Nothing is written to the cluster.
//! - No text leaves the cluster whose field is not known to be harmless; see `redact`. Secrets are not read. Of
//!   ConfigMaps only that of the settings is.
//! - What cannot be read is listed in `errors.txt`, and the rest is collected.
//! - Limits: objects of each kind, pages of a list, bytes of a log, explanations.

mod archive;
mod installation;
mod logs;
mod objects;
mod reader;
mod redact;

use std::{
    fmt::Write as _,
    fs::{self, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use clap::Args;
use kruise_frame::json::text;
use kruise_install::manifests;
use kruise_program::output;
use kruise_runtime::{Client, Clock};
use serde_json::{Value, json};

use archive::Archive;
use installation::Installation;
use objects::Objects;
use reader::Reader;

use crate::{connection::Connection, run, version::Facts};

/// Examples of its command line.
pub const EXAMPLES: &[(&str, &str)] = &[
    ("Everything", "kubectl kruise bundle"),
    (
        "Objects of one namespace",
        "kubectl kruise bundle -n shop -o shop.tar.gz",
    ),
];

/// What to collect.
#[derive(Args, Debug)]
pub struct Options {
    /// The file to write, which must not exist; without it kruise-bundle-TIME.tar.gz in this folder.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Namespace of the manager.
    #[arg(long, default_value = manifests::NAMESPACE)]
    manager_namespace: String,
    /// Objects of each kind, pods, revisions and events, at most.
    #[arg(long, value_name = "NUMBER", default_value_t = 1000)]
    max_objects: usize,
    /// Bytes of each log, at most.
    #[arg(long, value_name = "NUMBER", default_value_t = 1 << 20)]
    max_log_bytes: usize,
}

/// Writes the bundle. Returns a line about it. With the namespace of a flag, only objects of that are in it,
/// and those that are in none.
///
/// # Errors
/// Fails if the file exists or cannot be written, if the cluster cannot be reached, or if nothing of it may
/// be read.
pub fn run(connection: &Connection, options: &Options) -> anyhow::Result<String> {
    run::to_end(async {
        let path = options.output.clone().unwrap_or_else(default_name);
        let mut file = New::create(&path)?;
        let client = connection.connect("bundle").await?;
        let bundle = collect(&client, connection.given_namespace(), options).await?;
        file.write(&bundle.bytes)?;
        let mut text = format!(
            "{} has {} objects and {} of their pods\n",
            path.display(),
            bundle.objects,
            bundle.pods
        );
        if bundle.missing > 0 {
            let _infallible = writeln!(
                text,
                "{} things are missing or not complete; errors.txt in it lists them",
                bundle.missing
            );
        }
        Ok(text)
    })
}

fn default_name() -> PathBuf {
    let time = Clock::SYSTEM.now().strftime("%Y%m%dT%H%M%SZ");
    format!("kruise-bundle-{time}.tar.gz").into()
}

/// A new file for its owner alone, which is removed unless it was written.
struct New<'p> {
    path: &'p Path,
    file: fs::File,
    is_written: bool,
}

impl<'p> New<'p> {
    fn create(path: &'p Path) -> anyhow::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options
            .open(path)
            .with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self {
            path,
            file,
            is_written: false,
        })
    }

    fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        let written = self.file.write_all(bytes).and_then(|()| self.file.sync_all());
        written.with_context(|| format!("cannot write {}", self.path.display()))?;
        self.is_written = true;
        Ok(())
    }
}

impl Drop for New<'_> {
    fn drop(&mut self) {
        if !self.is_written
            && let Err(error) = fs::remove_file(self.path)
        {
            output::report(format_args!(
                "{} is incomplete, and stays: {error}",
                self.path.display()
            ));
        }
    }
}

/// A bundle that was collected.
struct Bundle {
    bytes: Vec<u8>,
    objects: usize,
    pods: usize,
    /// Number of things that are missing.
    missing: usize,
}

async fn collect(client: &Client, only: Option<&str>, options: &Options) -> anyhow::Result<Bundle> {
    let server: Value = client.get("/version").await.unwrap_or_default();
    let time = u64::try_from(client.now().as_second()).unwrap_or_default();
    let mut archive = Archive::new(time);
    let mut reader = Reader::new(client, options.max_objects);
    archive.json(
        "version.json",
        &json!({"program": Facts::new(), "server": server}),
    )?;
    let groups = reader.object("/apis").await.unwrap_or_default();
    archive.json("groups.json", &groups.get("groups"))?;
    let namespace = &options.manager_namespace;
    let installation = installation::collect(&mut reader, &mut archive, namespace).await?;
    let found = objects::collect(&mut reader, &mut archive, only).await?;
    if !reader.has_read() {
        let first = reader
            .missing()
            .first()
            .map_or("nothing is there", String::as_str);
        bail!("nothing of the cluster can be read: {first}");
    }
    objects::explain(&mut reader, &mut archive, &found, namespace).await?;
    let managers = logs::collect(
        &mut reader,
        &mut archive,
        namespace,
        &installation.pods,
        options.max_log_bytes,
    )
    .await?;
    let summary = summary(&server, &installation, managers, &found, reader.missing().len());
    archive.text("summary.txt", summary.as_bytes())?;
    let missing = reader.missing();
    if !missing.is_empty() {
        archive.text("errors.txt", (missing.join("\n") + "\n").as_bytes())?;
    }
    Ok(Bundle {
        objects: found.counts.values().map(|(number, _)| number).sum(),
        pods: found.pods,
        missing: missing.len(),
        bytes: archive.finish()?,
    })
}

/// What stands out, for people.
fn summary(
    server: &Value,
    installation: &Installation,
    managers: (usize, usize),
    found: &Objects,
    missing: usize,
) -> String {
    let Facts { version, commit, .. } = Facts::new();
    let leader = match installation.leader.as_str() {
        "" => "nobody",
        leader => leader,
    };
    let mut text = format!(
        "kruise {version} ({commit}), which made this bundle\nserver: {}\nmanagers: {} of {} pods are ready; the leader is {leader}\n",
        text(server, "/gitVersion"),
        managers.0,
        managers.1,
    );
    for line in &installation.definitions {
        text = text + "definition " + line + "\n";
    }
    // Writing to a string cannot fail.
    for (plural, (number, unsettled)) in &found.counts {
        let _infallible = writeln!(text, "{plural}: {number}, of them {unsettled} not settled");
    }
    let _infallible = writeln!(text, "pods that they own: {}", found.pods);
    let _infallible = writeln!(text, "missing or not complete: {missing}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_exists_stays_and_one_that_was_not_finished_does_not() {
        let path = std::env::temp_dir().join(format!("kruise-bundle-{}", std::process::id()));
        let mut file = New::create(&path).unwrap();
        file.write(b"bundle").unwrap();
        drop(file);
        assert!(New::create(&path).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"bundle");
        fs::remove_file(&path).unwrap();
        drop(New::create(&path).unwrap());
        assert!(!path.exists());
    }
}
