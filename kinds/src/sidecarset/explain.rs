//! Explains the plan of a SidecarSet: which pods would be upgraded, what holds the others, and which cannot be
//! upgraded.

use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use futures::future::{BoxFuture, FutureExt};
use jiff::Timestamp;
use kruise_api::{
    path::segment,
    sidecarset::{KIND, SidecarSet},
};
use kruise_frame::{
    explain::{
        Request,
        events::Warnings,
        list, list_pods, metadata,
        pods::{Facts, needs_help},
        render,
    },
    gates::Gates,
};
use kruise_plan_kit::Memory;
use kruise_plan_sidecars::{Explain, Repairs, plan};
use kruise_runtime::{Client, Served, discovery};
use kruise_views::{NamespaceView, PodView, RevisionView};
use serde_json::Value;

use crate::{
    budgets::{self, Budgets},
    sidecarset::{Inputs, Parameters, injected},
};

/// Explains a SidecarSet, or one pod of it, which is given as NAME or NAMESPACE/NAME. Revisions are in the manager's
/// namespace.
pub fn explain<'r>(request: &'r Request<'r>) -> BoxFuture<'r, anyhow::Result<String>> {
    of_cluster(request).boxed()
}

/// The budgets of all namespaces; none unless they limit anything and are served.
async fn budgets_of_all(client: &Client, served: &Served, gates: &Gates) -> anyhow::Result<Budgets> {
    let resource = kruise_api::podunavailablebudget::RESOURCE;
    let limits = budgets::limits(gates);
    if served.version(resource).is_none() || !(limits.deletions || limits.updates) {
        return Ok(Budgets::default());
    }
    Ok(Budgets::new(
        list(client, &served.collection(resource, None)?).await?,
        limits,
    ))
}

async fn of_cluster(request: &Request<'_>) -> anyhow::Result<String> {
    let Request {
        client,
        name,
        pod,
        manager_namespace,
        ..
    } = *request;
    let served = discovery::discover(client, &[&KIND], &[]).await?;
    let api_version = served.api_version(kruise_api::sidecarset::RESOURCE)?;
    let collection = served.collection(kruise_api::sidecarset::RESOURCE, None)?;
    let object: Value = client
        .get(&format!("{collection}/{}", segment(name)))
        .await
        .with_context(|| format!("cannot read SidecarSet {name}"))?;
    let set = SidecarSet::from_json(&object)
        .map_err(|error| anyhow!("the specification cannot be read: {error}"))?;
    let (all, mut full) = list_pods(client, "/api/v1/pods").await?;
    let (pods, not_injected): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|pod| injected(pod).any(|injected| injected == name));
    let is_it =
        |have: &PodView, pod: &str| *have.name == *pod || format!("{}/{}", have.namespace, have.name) == pod;
    let path = format!(
        "/apis/apps/v1/namespaces/{}/controllerrevisions",
        segment(manager_namespace)
    );
    let revisions: Vec<Arc<RevisionView>> = list(client, &path).await?;
    let namespaces: Vec<Arc<NamespaceView>> = list(client, "/api/v1/namespaces").await?;
    let sets: Vec<Arc<Value>> = list(client, &collection).await?;
    let names = sets
        .iter()
        .filter_map(|set| set.pointer("/metadata/name")?.as_str());
    let names = names.map(str::to_owned).collect();
    let injected = |pod: &str| pods.iter().any(|have| is_it(have, pod));
    let is_injected = pod.is_some_and(injected);
    let is_uninjected = |about: &str| {
        let namespaced = |have: &PodView| format!("{}/{}", have.namespace, have.name) == about;
        pod.is_some_and(|pod| {
            not_injected
                .iter()
                .any(|have| is_it(have, pod) && namespaced(have))
        })
    };
    let inputs = Inputs::new(&set, pods.clone(), revisions, namespaces.clone(), names);
    let inputs = inputs.with_not_injected(&set, manager_namespace, not_injected.clone(), &namespaces, &sets);
    let (settings, _) = request.settings.resolve(client).await?;
    let inputs = inputs.with_budgets(budgets_of_all(client, &served, &settings.gates).await?);
    let parameters = Parameters {
        set: &set,
        api_version: &api_version,
        namespace: manager_namespace,
        memory: &Memory::default(),
        // The repairs that the manager has tried are in its memory only.
        repairs: &Repairs::since(Timestamp::MIN),
        explain: Explain::Yes,
    };
    let now = client.now();
    let plan = inputs.with_snapshot(&parameters, |snapshot| plan(snapshot, now));
    if let Some(pod) = pod
        && !is_injected
        && !plan.why.iter().any(|why| is_uninjected(&why.about))
    {
        bail!("SidecarSet {name} was not injected into a pod {pod}");
    }
    full.retain(|pod| pods.iter().any(|view| *view.uid == *metadata(pod, "uid")));
    let warnings = if full.iter().any(|pod| needs_help(pod)) {
        Warnings::read(client, None).await
    } else {
        Warnings::default()
    };
    let about = |pod: &Value| format!("{}/{}", metadata(pod, "namespace"), metadata(pod, "name"));
    // Hooks are their workload's.
    let facts = Facts::of(full.iter().map(|pod| (about(pod), &**pod)), None, &warnings, now);
    Ok(render(&format!("SidecarSet {name}"), &plan, &facts, &[], pod))
}
