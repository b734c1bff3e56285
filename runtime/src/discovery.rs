//! What the cluster serves, asked once at start.

use std::collections::BTreeMap;

use kruise_api::{definition::Kind, kinds};
use kruise_plan_kit::ResourceId;
use serde::{Deserialize, de::IgnoredAny};

use crate::{ApiError, Client, Served};

/// Versions that this build can work in, newest first.
const VERSIONS: [&str; 2] = ["v1beta1", "v1alpha1"];

/// Why the manager cannot work on this cluster, and the command that helps.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryError {
    /// The API server did not answer, or is not ready.
    #[error(
        "the API server {host} cannot be asked what it serves: {error}; is it up? kubectl get --raw /readyz"
    )]
    Unreachable {
        /// Host and port.
        host: String,
        /// What happened.
        error: ApiError,
    },
    /// The credentials or their rights do not do.
    #[error(
        "the API server {host} does not let the manager look: {error}; check the credentials with: \
         kubectl auth whoami, and install their rights with: kruise manifests | kubectl apply -f -"
    )]
    Refused {
        /// Host and port.
        host: String,
        /// Its answer.
        error: ApiError,
    },
    /// Versions of a kind are served side by side and nobody converts between them: the server would drop fields of
    /// either.
    #[error(
        "{0} is served in several versions without a conversion webhook, which loses fields; \
         install this build's definitions: kruise manifests | kubectl apply -f -"
    )]
    NoConversion(String),
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

/// Which of our kinds the cluster serves, each in the newest version that this build knows: with published charts mostly
/// `v1alpha1`. A kind that is not served has no version. Fails if one of the kinds that are `reconciled` is served in two
/// versions that nobody converts.
pub async fn discover(
    client: &Client,
    reconciled: impl IntoIterator<Item = &'static Kind>,
) -> Result<Served, DiscoveryError> {
    let mut versions: BTreeMap<ResourceId, Vec<&'static str>> = BTreeMap::new();
    let mut groups: Vec<&'static str> = kinds::ALL.into_iter().map(|kind| kind.group).collect();
    groups.sort_unstable();
    groups.dedup();
    for group in groups {
        for version in VERSIONS {
            let served = names(client, group, version).await?;
            let kinds = kinds::ALL.into_iter().filter(|kind| kind.group == group);
            for kind in kinds.filter(|kind| served.iter().any(|name| name == kind.plural)) {
                versions.entry(resource(kind)).or_default().push(version);
            }
        }
    }
    for kind in reconciled {
        let is_doubled = versions.get(&resource(kind)).is_some_and(|all| all.len() > 1);
        if is_doubled && kind.conversion.needs_webhook() {
            check_conversion(client, kind).await?;
        }
    }
    let newest = versions.into_iter();
    Ok(newest
        .filter_map(|(resource, all)| Some((resource, *all.first()?)))
        .collect())
}

fn resource(kind: &Kind) -> ResourceId {
    ResourceId {
        group: kind.group,
        plural: kind.plural,
    }
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

/// The version of the server itself, as it spells it (`v1.34.2`).
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

/// May this client list the objects at a path?
pub async fn may_list(client: &Client, path: &str) -> Result<bool, DiscoveryError> {
    match client.get::<IgnoredAny>(&format!("{path}?limit=1")).await {
        Ok(_) => Ok(true),
        Err(error) if error.status().is_some_and(|status| status.code == 403) => Ok(false),
        Err(error) => Err(failed(client, error)),
    }
}

/// Makes sure that versions which are served side by side are converted by a webhook.
async fn check_conversion(client: &Client, kind: &Kind) -> Result<(), DiscoveryError> {
    let name = kind.name();
    let definition: Definition = client
        .get(&format!(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
        ))
        .await
        .map_err(|error| failed(client, error))?;
    if definition.spec.conversion.strategy != "Webhook" {
        return Err(DiscoveryError::NoConversion(name));
    }
    Ok(())
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
