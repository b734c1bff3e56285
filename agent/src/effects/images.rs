//! Calls about images.

use std::sync::Arc;
use std::time::Duration;

use cri::{Auth, Client, Error};
use image_credentials::Credential;
use kruise_agent_core::{Failure, Filesystem, Pull, PullError, RuntimeImage, SecretRef};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::disk::Folders;
use super::secrets::Secret;
use super::{NO_RUNTIME, disk, failure};
use crate::credentials::Credentials;
use crate::metrics::Metrics;

/// The runtime gives up a pull this long after it was cancelled here.
const BEYOND: Duration = Duration::from_secs(5);
/// Longest time in which a disk says how large and how full it is.
const MEASUREMENT: Duration = Duration::from_secs(10);

/// Every image, as narrow as it is needed.
pub(super) async fn list(client: Client) -> Result<Vec<RuntimeImage>, Failure> {
    let add = |all: &mut Vec<RuntimeImage>, image: cri::Image| {
        all.push(RuntimeImage {
            id: image.id.into(),
            tags: image.tags.into_iter().map(Into::into).collect(),
            digests: image.digests.into_iter().map(Into::into).collect(),
        });
    };
    let listed = client.fold_images(Vec::new(), add).await;
    listed.map_err(|error| failure(&error))
}

/// The size of the file system with the images, which a runtime does not tell: only where that is.
pub(super) async fn filesystem(client: Client) -> Result<Filesystem, Failure> {
    let all = client.filesystems().await;
    let all = all.map_err(|error| failure(&error))?;
    let folder = |all: Vec<cri::Filesystem>| {
        let folder = all.into_iter().next().map(|one| one.mountpoint);
        folder.filter(|folder| folder.is_absolute())
    };
    let images = folder(all.images)
        .ok_or_else(|| Failure::Failed("the runtime does not say where its images are".into()))?;
    let containers = folder(all.containers);
    // A disk that does not answer must not stop everything else.
    let measured = tokio::task::spawn_blocking(move || disk::measure(&Folders { images, containers }));
    let measured = match timeout(MEASUREMENT, measured).await {
        Ok(measured) => measured.unwrap_or_else(|error| Err(error.to_string())),
        Err(_) => Err("the disk does not answer".to_owned()),
    };
    measured.map_err(|problem| Failure::Failed(problem.into()))
}

/// One attempt: all credentials in turn, within its time.
pub(super) async fn pull(
    client: Option<Client>,
    pull: &Pull,
    secrets: &[(SecretRef, Arc<Secret>)],
    credentials: &Credentials,
    cancelled: oneshot::Receiver<()>,
    metrics: &Metrics,
) -> Result<Box<str>, PullError> {
    let started = Instant::now();
    metrics.pull_begins();
    let tried = async {
        let Some(client) = client else {
            return Err(Failure::Unavailable(NO_RUNTIME.into()));
        };
        let found = credentials.find(&pull.image, &pull.credentials, secrets).await;
        let found = found.map_err(|problem| Failure::Failed(problem.into()))?;
        try_all(&client, pull, &found).await
    };
    let result = tokio::select! {
        biased;
        // Dropping the call cancels it in the runtime.
        _ = cancelled => Err(PullError::Cancelled),
        tried = timeout(pull.timeout, tried) => match tried {
            Ok(result) => result.map_err(PullError::Failure),
            Err(_) => Err(PullError::TimedOut),
        },
    };
    metrics.pull_ended(&result, started.elapsed());
    result
}

/// Tries one credential after the other until one is taken; without any, pulls as anybody.
async fn try_all(client: &Client, pull: &Pull, found: &[Credential]) -> Result<Box<str>, Failure> {
    if found.is_empty() {
        let pulled = call(client, pull, None).await;
        return pulled.map_err(|error| failure(&error));
    }
    let mut problems: Vec<String> = Vec::new();
    for credential in found {
        match call(client, pull, Some(auth(credential))).await {
            Ok(reference) => return Ok(reference),
            Err(error @ Error::Unavailable(_)) => return Err(failure(&error)),
            Err(error) => {
                let problem = error.to_string();
                if !problems.contains(&problem) {
                    problems.push(problem);
                }
            }
        }
    }
    Err(Failure::Failed(match problems.as_slice() {
        [one] => one.as_str().into(),
        all => format!("[{}]", all.join(", ")).into(),
    }))
}

async fn call(client: &Client, pull: &Pull, auth: Option<Auth<'_>>) -> Result<Box<str>, Error> {
    let owned = |of: &kruise_views::Labels| {
        let pairs = of.iter();
        pairs
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    };
    let request = cri::Pull {
        image: &pull.image,
        auth,
        labels: owned(&pull.sandbox.labels),
        annotations: owned(&pull.sandbox.annotations),
    };
    let limit = pull.timeout.saturating_add(BEYOND);
    client.pull(&request, limit).await.map(Into::into)
}

fn auth(credential: &Credential) -> Auth<'_> {
    match credential {
        Credential::Basic { username, password } => Auth::Basic { username, password },
        Credential::Identity(token) => Auth::Identity(token),
        Credential::Registry(token) => Auth::Registry(token),
    }
}
