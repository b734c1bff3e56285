//! Runs plugins.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use super::cache::Cache;
use super::config::Plugin;
use super::{PluginConfig, ResponseError};
use crate::location::Location;
use crate::{DockerConfig, Keyring};

/// How long a plugin may take, as in the kubelet.
const LONGEST: Duration = Duration::from_mins(1);
/// How much it may answer.
const MOST_OUTPUT: u64 = 1 << 20;
/// How much of its error output is reported.
const MOST_ERRORS: u64 = 1 << 10;

/// The plugins of a configuration, with what they answered.
///
/// Two questions for one image do not run a plugin twice at the same time: the second waits for the answer to the
/// first.
#[derive(Debug)]
pub struct Plugins {
    all: Vec<Running>,
    limit: Duration,
}

#[derive(Debug)]
struct Running {
    plugin: Plugin,
    program: PathBuf,
    cache: Mutex<Cache>,
    /// Held while the plugin runs for an image.
    turns: Mutex<BTreeMap<String, Weak<tokio::sync::Mutex<()>>>>,
}

/// A plugin that gave no credentials.
#[derive(Debug, thiserror::Error)]
#[error("credential provider {plugin}: {failure}")]
pub struct PluginError {
    /// Its name.
    pub plugin: String,
    /// Why.
    pub failure: PluginFailure,
}

/// Why a plugin gave no credentials.
#[derive(Debug, thiserror::Error)]
pub enum PluginFailure {
    /// It could not be started, or talked to.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It did not end in time, and was killed.
    #[error("no answer within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    /// It ended with an error.
    #[error("{status}{}", Reason(.errors))]
    Failed {
        /// How it ended.
        status: ExitStatus,
        /// The beginning of its error output.
        errors: String,
    },
    /// It answered more than one could want.
    #[error("its answer is longer than {MOST_OUTPUT} bytes")]
    TooLarge,
    /// It answered something else.
    #[error(transparent)]
    Response(#[from] ResponseError),
}

/// `: ` and a text, if there is one.
struct Reason<'a>(&'a str);

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.trim() {
            "" => Ok(()),
            text => write!(f, ": {text}"),
        }
    }
}

impl Plugins {
    /// The plugins of a configuration, whose programs are in `folder`.
    pub fn new(config: PluginConfig, folder: &Path) -> Self {
        Self::with_limit(config, folder, LONGEST)
    }

    /// As [`new`](Self::new), with another time limit.
    pub fn with_limit(config: PluginConfig, folder: &Path, limit: Duration) -> Self {
        let running = |plugin: Plugin| Running {
            program: folder.join(&plugin.name),
            plugin,
            cache: Mutex::default(),
            turns: Mutex::default(),
        };
        Self {
            all: config.0.into_iter().map(running).collect(),
            limit,
        }
    }

    /// The names of plugins that are never run, because they need a service account.
    pub fn unused(&self) -> impl Iterator<Item = &str> {
        let unused = self.all.iter().filter(|running| running.plugin.needs_account);
        unused.map(|running| running.plugin.name.as_str())
    }

    /// Adds the credentials for a repository to a keyring, from every plugin that is for it, and returns the
    /// failures of the others. `repository` has its registry and no tag.
    pub async fn add_to(&self, keyring: &mut Keyring, repository: &str, now: Duration) -> Vec<PluginError> {
        let Some(target) = Location::parse(repository) else {
            return Vec::new();
        };
        let mut errors = Vec::new();
        for running in &self.all {
            let is_for = running.plugin.images.iter().any(|image| image.covers(&target));
            if !is_for || running.plugin.needs_account {
                continue;
            }
            match running.config(repository, now, self.limit).await {
                Ok(config) => keyring.add(config),
                Err(failure) => errors.push(PluginError {
                    plugin: running.plugin.name.clone(),
                    failure,
                }),
            }
        }
        errors
    }
}

impl Running {
    async fn config(
        &self,
        image: &str,
        now: Duration,
        limit: Duration,
    ) -> Result<DockerConfig, PluginFailure> {
        let turn = self.turn(image);
        let _mine = turn.lock().await;
        if let Some(config) = lock(&self.cache).get(image, now) {
            return Ok(config.clone());
        }
        let run = self.run(image);
        let ran = tokio::time::timeout(limit, run).await;
        let output = ran.map_err(|_| PluginFailure::TimedOut(limit))??;
        let response = self.plugin.protocol.response(&output)?;
        let fresh = response.fresh.unwrap_or(self.plugin.fresh);
        let config = response.config;
        lock(&self.cache).put(response.cache_key, image, config.clone(), fresh, now);
        Ok(config)
    }

    fn turn(&self, image: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = lock(&self.turns);
        turns.retain(|_, turn| turn.strong_count() > 0);
        let known = turns.get(image).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let turn = Arc::default();
            turns.insert(image.to_owned(), Arc::downgrade(&turn));
            turn
        })
    }

    /// Runs the program, and kills it if this is dropped.
    async fn run(&self, image: &str) -> Result<Vec<u8>, PluginFailure> {
        let mut child = Command::new(&self.program)
            .args(&self.plugin.arguments)
            .envs(self.plugin.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let request = self.plugin.protocol.request(image);
        let ask = async move {
            if let Some(mut stdin) = stdin {
                // A plugin that does not read its question may answer all the same.
                let _closed_early = stdin.write_all(&request).await;
            }
        };
        let ((), output, errors) = tokio::join!(ask, read(stdout, MOST_OUTPUT), read(stderr, MOST_ERRORS));
        let ((output, more), (errors, _)) = (output?, errors?);
        let status = child.wait().await?;
        if !status.success() {
            return Err(PluginFailure::Failed {
                status,
                errors: String::from_utf8_lossy(&errors).into_owned(),
            });
        }
        if more > 0 {
            return Err(PluginFailure::TooLarge);
        }
        Ok(output)
    }
}

/// Reads to the end, so that the writer is not stopped. Keeps what comes first, and counts the bytes beyond `most`.
async fn read(from: Option<impl AsyncRead + Unpin>, most: u64) -> io::Result<(Vec<u8>, u64)> {
    let mut kept = Vec::new();
    let Some(mut from) = from else {
        return Ok((kept, 0));
    };
    (&mut from).take(most).read_to_end(&mut kept).await?;
    let more = tokio::io::copy(&mut from, &mut tokio::io::sink()).await?;
    Ok((kept, more))
}

/// What is guarded is whole at any time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
