//! A SidecarSet's plan: what would be upgraded, what holds the others, and which pods cannot follow.

use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use jiff::Timestamp;
use kruise_api::sidecarset::SidecarSet;
use kruise_plan_kit::Memory;
use kruise_plan_sidecars::Explain;
use kruise_runtime::{Client, discovery};
use kruise_views::{NamespaceView, PodView, RevisionView};
use serde_json::Value;

use super::{list, render};
use crate::manager::{Sidecars, injected};

/// Explains a set, or one pod of it, named alone or with its namespace. Revisions are in the manager's namespace.
pub(super) async fn explain(
    client: &Client,
    manager_namespace: &str,
    name: &str,
    pod: Option<&str>,
) -> anyhow::Result<String> {
    let Some(version) = discovery::sidecarset_version(client).await? else {
        bail!("the cluster does not serve sidecarsets.apps.kruise.io");
    };
    let collection = format!("/apis/apps.kruise.io/{version}/sidecarsets");
    let object: Value = client
        .get(&format!("{collection}/{name}"))
        .await
        .with_context(|| format!("cannot read SidecarSet {name}"))?;
    let set = SidecarSet::from_json(&object)
        .map_err(|error| anyhow!("the specification cannot be read: {error}"))?;
    let mut pods: Vec<Arc<PodView>> = list(client, "/api/v1/pods").await?;
    pods.retain(|pod| injected(pod).any(|injected| injected == name));
    let is_it =
        |have: &PodView, pod: &str| *have.name == *pod || format!("{}/{}", have.namespace, have.name) == pod;
    if let Some(pod) = pod
        && !pods.iter().any(|have| is_it(have, pod))
    {
        bail!("SidecarSet {name} was not injected into a pod {pod}");
    }
    let path = format!("/apis/apps/v1/namespaces/{manager_namespace}/controllerrevisions");
    let revisions: Vec<Arc<RevisionView>> = list(client, &path).await?;
    let namespaces: Vec<Arc<NamespaceView>> = list(client, "/api/v1/namespaces").await?;
    let sets: Vec<Arc<Value>> = list(client, &collection).await?;
    let names = sets
        .iter()
        .filter_map(|set| set.pointer("/metadata/name")?.as_str());
    let names = names.map(str::to_owned).collect();
    let world = Sidecars::new(&set, pods, revisions, namespaces, names);
    let api_version = format!("{}/{version}", kruise_api::names::APPS_GROUP);
    let plan = world.plan(
        &set,
        &api_version,
        manager_namespace,
        &Memory::default(),
        Explain::Yes,
        Timestamp::now(),
    );
    Ok(render(&format!("SidecarSet {name}"), &plan, pod))
}
