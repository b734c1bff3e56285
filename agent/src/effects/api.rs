//! Writes to the API server: the statuses of the NodeImage and of the NodePodProbe, and reports on pods. For requests:
//! [`Requests`].

use kruise_agent_core::WriteError;
use kruise_plan_kit::{Part, Patch, ResourceId, Target};
use kruise_runtime::{ApiError, Client, Served};
use serde::Deserialize;
use serde_json::Value;

use super::requests::Requests;
use crate::probes::NODE_POD_PROBES;
use crate::served::Versions;
use crate::watches::NODE_IMAGES;

/// Content type of a strategic merge patch.
const STRATEGIC: &str = "application/strategic-merge-patch+json";
/// Content type of a JSON patch.
const JSON: &str = "application/json-patch+json";

/// Writes of the agent.
pub(crate) struct Api {
    /// For the NodeImage.
    pub(crate) images: Client,
    /// For pods.
    pub(crate) pods: Client,
    /// For ContainerRecreateRequests.
    pub(crate) requests: Requests,
    /// For the NodePodProbe.
    pub(crate) probes: Probes,
    /// The versions that the cluster serves.
    pub(crate) served: Versions,
}

/// Writes of results of probes.
pub(crate) struct Probes {
    pub(crate) client: Client,
    /// The versions that the cluster serves.
    pub(crate) served: Versions,
}

/// What is read of the answer.
#[derive(Deserialize)]
struct Written {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    resource_version: Box<str>,
}

impl Api {
    /// Sends a merge patch in the newest version; returns the version of the object after the write.
    pub(super) async fn node_image_status(&self, name: &str, patch: Value) -> Result<Box<str>, WriteError> {
        let target = Target {
            resource: NODE_IMAGES,
            namespace: String::new(),
            name: name.to_owned(),
        };
        let served = self.served.get();
        let patch = served.status_patch(target.resource, patch).map_err(not_made)?;
        let path = served.path(&target, Part::Status).map_err(not_made)?;
        send(&self.images, &path, Patch::MERGE, &patch).await
    }

    /// Sends a JSON patch; returns the version of the object after the write. A test that fails is a conflict.
    pub(super) async fn node_pod_probe_status(
        &self,
        name: &str,
        patch: &Value,
    ) -> Result<Box<str>, WriteError> {
        let target = Target {
            resource: NODE_POD_PROBES,
            namespace: String::new(),
            name: name.to_owned(),
        };
        let served = self.probes.served.get();
        let path = served.path(&target, Part::Status).map_err(not_made)?;
        send(&self.probes.client, &path, JSON, patch).await
    }

    /// Sends a strategic merge patch; returns the version of the pod after the write.
    pub(super) async fn pod_status(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Box<str>, WriteError> {
        let target = Target {
            resource: ResourceId::PODS,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let path = Served::default().path(&target, Part::Status).map_err(not_made)?;
        send(&self.pods, &path, STRATEGIC, patch).await
    }
}

pub(super) async fn send(
    client: &Client,
    path: &str,
    kind: &'static str,
    patch: &Value,
) -> Result<Box<str>, WriteError> {
    let written: Result<Written, ApiError> = client.patch(path, kind, patch).await;
    match written {
        Ok(written) => Ok(written.metadata.resource_version),
        Err(error) if error.is_conflict() => Err(WriteError::Conflict),
        // So is a test of a JSON patch that fails reported, beside statuses that are wrong.
        Err(error) if kind == JSON && error.is_invalid() => Err(WriteError::Conflict),
        Err(error) if error.is_not_found() => Err(WriteError::NotFound),
        Err(error) => Err(not_made(error)),
    }
}

pub(super) fn not_made(error: impl ToString) -> WriteError {
    WriteError::Failed(error.to_string().into())
}
