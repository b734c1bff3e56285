//! The registration of the webhook for new pods, which follows the SidecarSets.

use std::{sync::Arc, time::Duration};

use kruise::manager::{MatchConditions, Routes};
use kruise_admission::manifests;
use kruise_runtime::Client;
use kruise_server::configuration::{ConditionalWebhook, DesiredCondition, Endpoint, webhooks};
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::engine::{cluster::Cluster, process::ProcessId};

/// How soon a registration that failed is tried again.
const RETRY: Duration = Duration::from_secs(2);

/// Registers the webhook for pods that SidecarSets are injected into, whenever the leader wants it otherwise.
pub async fn register(cluster: Arc<Cluster>, id: ProcessId, client: Client, mut changes: MatchConditions) {
    loop {
        let desired = changes.borrow_and_update().clone();
        let routes = cluster.look(|state| state.routes.get(&id).cloned());
        let Some(routes) = routes else {
            return std::future::pending().await;
        };
        let written = match &desired {
            DesiredCondition::Unmanaged => Ok(()),
            desired => write_configuration(&client, &routes, desired).await,
        };
        let changed = async {
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        if written.is_ok() {
            changed.await;
        } else {
            // Either is a reason to try again.
            let _ = tokio::time::timeout(RETRY, changed).await;
        }
    }
}

async fn write_configuration(
    client: &Client,
    routes: &Routes,
    desired: &DesiredCondition,
) -> anyhow::Result<()> {
    let path = format!(
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{}",
        manifests::MUTATING
    );
    let current: Value = client.get(&path).await?;
    let pods_of_sets = ConditionalWebhook {
        name: manifests::PODS_OF_SETS.into(),
        path: manifests::MUTATE_POD.into(),
        condition: "matches-a-sidecarset".into(),
    };
    let endpoint = Endpoint::Service {
        namespace: "kruise-system".into(),
        name: manifests::SERVICE.into(),
    };
    let served = |path: &str| routes.contains_key(path);
    let wanted = webhooks(
        &current,
        b"ca",
        &endpoint,
        served,
        Some((&pods_of_sets, desired, client.now())),
    )?;
    if let Some(patch) = wanted.patch {
        client
            .patch::<IgnoredAny>(&path, "application/merge-patch+json", &patch)
            .await?;
    }
    Ok(())
}
