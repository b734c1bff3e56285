//! What the cluster serves, asked once at start.

use serde::Deserialize;

use crate::{ApiError, Client};

/// Versions of `apps.kruise.io` that this build can work in, newest first.
const VERSIONS: [&str; 2] = ["v1beta1", "v1alpha1"];

/// Why the manager cannot work on this cluster, and the command that helps.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryError {
    /// The API server did not answer.
    #[error("the API server cannot be asked what it serves")]
    Unreachable(#[from] ApiError),
    /// No CloneSet definition.
    #[error(
        "the cluster does not serve clonesets.apps.kruise.io; install the definitions first: \
         kruise manifests | kubectl apply -f -"
    )]
    NoCloneSets,
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
    for version in VERSIONS {
        match client
            .get::<ResourceList>(&format!("/apis/apps.kruise.io/{version}"))
            .await
        {
            Ok(list) if list.resources.iter().any(|resource| resource.name == "clonesets") => {
                return Ok(version);
            }
            Ok(_) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(DiscoveryError::NoCloneSets)
}
