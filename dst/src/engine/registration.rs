//! The registration of the webhooks whose match conditions follow SidecarSets and budgets.

use std::{sync::Arc, time::Duration};

use futures::future::select_all;
use kruise_admission::manifests;
use kruise_manager::{MatchConditions, Routes};
use kruise_runtime::Client;
use kruise_server::{
    configuration::{Call, Desired, DesiredCondition, Endpoint, webhooks},
    webhook_controller::{Conditional, Phase},
};
use serde::de::IgnoredAny;
use serde_json::Value;

use super::{cluster::Cluster, process::ProcessId};

/// How soon a registration that failed is tried again.
const RETRY: Duration = Duration::from_secs(2);

/// The configurations.
const CONFIGURATIONS: [(Phase, &str, &str); 2] = [
    (
        Phase::Mutating,
        "mutatingwebhookconfigurations",
        manifests::MUTATING,
    ),
    (
        Phase::Validating,
        "validatingwebhookconfigurations",
        manifests::VALIDATING,
    ),
];

/// Registers the webhooks whenever the leader wants their conditions otherwise.
pub async fn register(
    cluster: Arc<Cluster>,
    id: ProcessId,
    client: Client,
    mut conditionals: MatchConditions,
) {
    loop {
        for one in &mut conditionals {
            one.desired.mark_unchanged();
        }
        let routes = cluster.look(|state| state.routes.get(&id).cloned());
        let Some(routes) = routes else {
            return std::future::pending().await;
        };
        let mut written = Ok(());
        for (phase, plural, name) in CONFIGURATIONS {
            let of_phase: Vec<&Conditional> = conditionals.iter().filter(|one| one.phase == phase).collect();
            let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}/{name}");
            written = written.and(write_configuration(&client, &routes, &path, &of_phase).await);
        }
        let changed = select_all(conditionals.iter_mut().map(|one| {
            Box::pin(async move {
                if one.desired.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            })
        }));
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
    path: &str,
    conditionals: &[&Conditional],
) -> anyhow::Result<()> {
    let desired: Vec<DesiredCondition> = conditionals
        .iter()
        .map(|one| one.desired.borrow().clone())
        .collect();
    if desired
        .iter()
        .all(|desired| *desired == DesiredCondition::Unmanaged)
    {
        return Ok(());
    }
    let current: Value = client.get(path).await?;
    let endpoint = Endpoint::Service {
        namespace: "kruise-system".into(),
        name: manifests::SERVICE.into(),
    };
    let served = |call: &Call<'_>| routes.contains_key(call.path);
    let now = client.now();
    let desired: Vec<Desired<'_>> = conditionals
        .iter()
        .zip(&desired)
        .map(|(one, desired)| (&one.webhook, desired, now))
        .collect();
    let wanted = webhooks(&current, b"ca", &endpoint, served, &desired)?;
    if let Some(patch) = wanted.patch {
        client
            .patch::<IgnoredAny>(path, "application/merge-patch+json", &patch)
            .await?;
    }
    Ok(())
}
