//! Calls about images.

use std::sync::Arc;
use std::time::Duration;

use cri::{Auth, Error};
use image_credentials::Credential;
use kruise_agent_core::{Failure, Pull, PullError, RuntimeImage, SecretRef};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::failure::{NO_RUNTIME, failure};
use super::secrets::Secret;
use crate::credentials::Credentials;
use crate::metrics::Metrics;
use crate::runtime::Client;

/// The runtime gives up a pull this long after it was cancelled here.
const BEYOND: Duration = Duration::from_secs(5);

/// Every image, as narrow as it is needed.
pub(super) async fn list(client: Client) -> Result<Vec<RuntimeImage>, Failure> {
    let mut all = Vec::new();
    let mut add = |image: cri::Image| {
        all.push(RuntimeImage {
            id: image.id.into(),
            tags: image.tags.into_iter().map(Into::into).collect(),
            digests: image.digests.into_iter().map(Into::into).collect(),
        });
    };
    let listed = client.images(&mut add).await;
    listed.map_err(|error| failure(&error))?;
    Ok(all)
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
