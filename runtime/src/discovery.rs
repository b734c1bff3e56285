//! Detects at start-up which kinds and versions the cluster serves.

use std::collections::BTreeMap;

use futures::{StreamExt as _, stream};
use kruise_api::definition::Kind;
use kruise_plan_kit::ResourceId;
use serde::{Deserialize, de::IgnoredAny};

use crate::{ApiError, Client, Served};

/// Versions that this build supports, newest first.
const VERSIONS: [&str; 2] = ["v1beta1", "v1alpha1"];

/// Requests at the same time.
const CONCURRENCY: usize = 8;

/// Why the manager cannot run on this cluster, with a command that helps.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryError {
    /// The API server does not respond or is not ready.
    #[error(
        "the API server {host} cannot be asked what it serves: {error}; is it up? kubectl get --raw /readyz"
    )]
    Unreachable {
        /// Host and port.
        host: String,
        /// What happened.
        error: ApiError,
    },
    /// The credentials are invalid or lack permissions.
    #[error(
        "the API server {host} does not let the manager look: {error}; check the credentials with: \
         kubectl auth whoami, and install their rights with: kruise manifests | kubectl apply -f -"
    )]
    Refused {
        /// Host and port.
        host: String,
        /// Its response.
        error: ApiError,
    },
}

#[derive(Deserialize)]
struct ResourceList {
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    name: String,
}

/// Which of these kinds the cluster serves, each in the newest version that this build knows: with published charts
/// mostly `v1alpha1`. A kind that is not served has no version. Nor has one of the kinds that are `written` if it
/// is served in two versions that nobody converts, because a write would lose fields: the log says so.
pub async fn discover(
    client: &Client,
    kinds: &[&'static Kind],
    written: &[&'static Kind],
) -> Result<Served, DiscoveryError> {
    let mut versions: BTreeMap<ResourceId, (&'static Kind, Vec<&'static str>)> = BTreeMap::new();
    let mut groups: Vec<&'static str> = kinds.iter().map(|kind| kind.group).collect();
    groups.sort_unstable();
    groups.dedup();
    let asked = groups
        .iter()
        .flat_map(|group| VERSIONS.map(|version| (*group, version)));
    let served = side_by_side(asked.map(|(group, version)| async move {
        let names = names(client, group, version).await?;
        Ok((group, version, names))
    }));
    for (group, version, served) in served.await? {
        let is_served = |kind: &Kind| kind.group == group && served.iter().any(|name| name == kind.plural);
        for kind in kinds.iter().copied().filter(|kind| is_served(kind)) {
            let (_, all) = versions.entry(ResourceId::of(kind)).or_insert((kind, Vec::new()));
            all.push(version);
        }
    }
    let is_doubled = |kind: &Kind| {
        let served = versions.get(&ResourceId::of(kind));
        kind.conversion.needs_webhook() && served.is_some_and(|(_, all)| all.len() > 1)
    };
    let doubled = written.iter().copied().filter(|kind| is_doubled(kind));
    let converted = side_by_side(doubled.map(|kind| async move {
        let is_converted = is_converted(client, kind).await?;
        Ok((kind, is_converted))
    }));
    for (kind, is_converted) in converted.await? {
        if !is_converted {
            tracing::warn!(
                "{} is served in several versions without a conversion webhook, which loses fields; \
                 install this build's definitions: kruise manifests | kubectl apply -f -",
                kind.name()
            );
            versions.remove(&ResourceId::of(kind));
        }
    }
    let newest = versions.into_iter();
    Ok(newest
        .filter_map(|(_, (kind, all))| Some((kind, *all.first()?)))
        .collect())
}

/// Sends requests side by side, a few at a time. Returns their results in order, or the first error.
async fn side_by_side<T>(
    requests: impl Iterator<Item = impl Future<Output = Result<T, DiscoveryError>>>,
) -> Result<Vec<T>, DiscoveryError> {
    let requests: Vec<_> = requests.collect();
    let results: Vec<_> = stream::iter(requests).buffered(CONCURRENCY).collect().await;
    results.into_iter().collect()
}

/// Plural names of what a group serves in a version.
async fn names(client: &Client, group: &str, version: &str) -> Result<Vec<String>, DiscoveryError> {
    match client
        .get::<ResourceList>(&format!("/apis/{group}/{version}"))
        .await
    {
        Ok(list) => Ok(list.resources.into_iter().map(|resource| resource.name).collect()),
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(failed(client, error)),
    }
}

/// The version of the server, such as `v1.34.2`.
pub async fn server_version(client: &Client) -> Result<String, DiscoveryError> {
    let version: ServerVersion = client
        .get("/version")
        .await
        .map_err(|error| failed(client, error))?;
    Ok(version.git_version)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct ServerVersion {
    git_version: String,
}

/// Whether this client may list the objects at a path.
pub async fn may_list(client: &Client, path: &str) -> Result<bool, DiscoveryError> {
    match client.get::<IgnoredAny>(&format!("{path}?limit=1")).await {
        Ok(_) => Ok(true),
        Err(error) if error.status().is_some_and(|status| status.code == 403) => Ok(false),
        Err(error) => Err(failed(client, error)),
    }
}

/// Whether a webhook converts between versions that are served side by side.
async fn is_converted(client: &Client, kind: &Kind) -> Result<bool, DiscoveryError> {
    let path = format!(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}",
        kind.name()
    );
    let definition: Definition = client.get(&path).await.map_err(|error| failed(client, error))?;
    Ok(definition.spec.conversion.strategy == "Webhook")
}

fn failed(client: &Client, error: ApiError) -> DiscoveryError {
    let host = client.host().to_owned();
    let refused = error
        .status()
        .is_some_and(|status| matches!(status.code, 401 | 403));
    if refused {
        DiscoveryError::Refused { host, error }
    } else {
        DiscoveryError::Unreachable { host, error }
    }
}

#[derive(Deserialize)]
struct Definition {
    spec: DefinitionSpec,
}

#[derive(Deserialize)]
struct DefinitionSpec {
    #[serde(default)]
    conversion: Conversion,
}

#[derive(Default, Deserialize)]
struct Conversion {
    strategy: String,
}
