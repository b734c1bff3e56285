//! What the cluster serves, asked once at start.

use serde::{Deserialize, de::IgnoredAny};

use crate::{ApiError, Client};

/// Versions of `apps.kruise.io` that this build can work in, newest first.
const VERSIONS: [&str; 2] = ["v1beta1", "v1alpha1"];

/// The CloneSet definition.
const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clonesets.apps.kruise.io";

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
    /// No CloneSet definition.
    #[error(
        "the cluster does not serve clonesets.apps.kruise.io; install the definitions first: \
         kruise manifests | kubectl apply -f -"
    )]
    NoCloneSets,
    /// Two versions are served and nobody converts between them: the server would drop fields of either.
    #[error(
        "clonesets.apps.kruise.io is served in several versions without a conversion webhook, which loses fields; \
         install this build's definitions: kruise manifests | kubectl apply -f -"
    )]
    NoConversion,
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

/// The newest served version of CloneSet that this build knows: with published charts `v1alpha1`.
pub async fn cloneset_version(client: &Client) -> Result<&'static str, DiscoveryError> {
    let version = version_of(client, "clonesets").await?;
    version.ok_or(DiscoveryError::NoCloneSets)
}

/// The newest served version of SidecarSet that this build knows, if the kind is served.
pub async fn sidecarset_version(client: &Client) -> Result<Option<&'static str>, DiscoveryError> {
    version_of(client, "sidecarsets").await
}

async fn version_of(client: &Client, plural: &str) -> Result<Option<&'static str>, DiscoveryError> {
    for version in VERSIONS {
        match client
            .get::<ResourceList>(&format!("/apis/apps.kruise.io/{version}"))
            .await
        {
            Ok(list) if list.resources.iter().any(|resource| resource.name == plural) => {
                return Ok(Some(version));
            }
            Ok(_) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(failed(client, error)),
        }
    }
    Ok(None)
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

/// Is this resource of `apps.kruise.io` served in this version?
pub async fn serves(client: &Client, version: &str, plural: &str) -> Result<bool, DiscoveryError> {
    let list = client
        .get::<ResourceList>(&format!("/apis/apps.kruise.io/{version}"))
        .await
        .map_err(|error| failed(client, error))?;
    Ok(list.resources.iter().any(|resource| resource.name == plural))
}

/// May this client list the objects at a path?
pub async fn may_list(client: &Client, path: &str) -> Result<bool, DiscoveryError> {
    match client.get::<IgnoredAny>(&format!("{path}?limit=1")).await {
        Ok(_) => Ok(true),
        Err(error) if error.status().is_some_and(|status| status.code == 403) => Ok(false),
        Err(error) => Err(failed(client, error)),
    }
}

/// Makes sure that versions of CloneSet which are served side by side are converted by a webhook.
pub async fn check_conversion(client: &Client) -> Result<(), DiscoveryError> {
    let definition: Definition = client
        .get(DEFINITION)
        .await
        .map_err(|error| failed(client, error))?;
    let spec = definition.spec;
    let served = spec.versions.iter().filter(|version| version.served).count();
    if served > 1 && spec.conversion.strategy != "Webhook" {
        return Err(DiscoveryError::NoConversion);
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
    versions: Vec<DefinedVersion>,
    #[serde(default)]
    conversion: Conversion,
}

#[derive(Deserialize)]
struct DefinedVersion {
    served: bool,
}

#[derive(Default, Deserialize)]
struct Conversion {
    strategy: String,
}
