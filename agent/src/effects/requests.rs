//! What ContainerRecreateRequests need of the API server: their pods, and writes of their statuses.

use kruise_agent_core::{PodHooks, WriteError};
use kruise_plan_kit::{Part, Patch, ResourceId, Target};
use kruise_runtime::{Client, Served};
use serde_json::Value;

use super::api::{not_made, send};
use crate::requests::REQUESTS;
use crate::served::Versions;

/// Reads and writes for requests.
pub(crate) struct Requests {
    pub(crate) client: Client,
    /// The versions that the cluster serves.
    pub(crate) served: Versions,
}

impl Requests {
    /// A pod; `None` if there is none.
    pub(super) async fn pod(&self, namespace: &str, name: &str) -> Result<Option<PodHooks>, Box<str>> {
        let plain = |error: &dyn ToString| error.to_string().into();
        let target = Target {
            resource: ResourceId::PODS,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let path = Served::default().path(&target, Part::Main);
        let path = path.map_err(|error| plain(&error))?;
        match self.client.get(&path).await {
            Ok(pod) => Ok(Some(pod)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(plain(&error)),
        }
    }

    /// Sends a merge patch in the newest version; returns the version of the request after the write.
    pub(super) async fn status(
        &self,
        namespace: &str,
        name: &str,
        patch: Value,
    ) -> Result<Box<str>, WriteError> {
        let target = Target {
            resource: REQUESTS,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let served = self.served.get();
        let patch = served.status_patch(target.resource, patch).map_err(not_made)?;
        let path = served.path(&target, Part::Status).map_err(not_made)?;
        send(&self.client, &path, Patch::MERGE, &patch).await
    }
}
