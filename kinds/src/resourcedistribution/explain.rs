//! Explains the plan of a ResourceDistribution: which namespaces have their copy, and what is in the way in others.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::{Context, anyhow, bail};
use futures::future::{BoxFuture, FutureExt};
use kruise_api::{
    path::segment,
    resourcedistribution::{KIND, ResourceDistribution},
};
use kruise_frame::explain::{Request, list, pods::Facts, read_needs, render};
use kruise_plan_distribution::resourcedistribution::{Copies, Source};
use kruise_plan_kit::{Explain, Memory, ResourceId};
use kruise_runtime::{Client, Served, discovery};
use kruise_views::{MetadataView, NamespaceView};
use kube_cache::ObjectKey;
use serde::Deserialize;

use crate::resourcedistribution::Inputs;
use kruise_runtime::parsed::Parsed;

/// Explains a ResourceDistribution, or what it does in one namespace.
pub fn explain<'r>(request: &'r Request<'r>) -> BoxFuture<'r, anyhow::Result<String>> {
    of_cluster(request).boxed()
}

async fn of_cluster(request: &Request<'_>) -> anyhow::Result<String> {
    let Request {
        client, name, pod, ..
    } = *request;
    let served = discovery::discover(client, &[&KIND], &[]).await?;
    let api_version = served.api_version(kruise_api::resourcedistribution::RESOURCE)?;
    let collection = served.collection(kruise_api::resourcedistribution::RESOURCE, None)?;
    let cached: Parsed<Arc<ResourceDistribution>> = client
        .get(&format!("{collection}/{}", segment(name)))
        .await
        .with_context(|| format!("cannot read {} {name}", KIND.kind))?;
    let distribution = cached
        .object
        .map_err(|error| anyhow!("the specification cannot be read: {error}"))?;
    let namespaces: Vec<Arc<NamespaceView>> =
        list(client, &served.collection(ResourceId::NAMESPACES, None)?).await?;
    let copies = match Source::of(&distribution.spec.resource) {
        Ok(source) => Listed::read(client, &served, source).await?,
        Err(_) => Listed::default(),
    };
    if let Some(namespace) = pod
        && !namespaces.iter().any(|have| have.name() == namespace)
    {
        bail!("there is no namespace {namespace}");
    }
    let inputs = Inputs {
        namespaces,
        copies: &copies,
    };
    let mut memory = Memory::default();
    let now = client.now();
    let mut plan = inputs.plan(&distribution, &api_version, &memory, Explain::Yes, now);
    if !plan.needs.is_empty() {
        read_needs(client, &served, &plan.needs, &mut memory).await?;
        plan = inputs.plan(&distribution, &api_version, &memory, Explain::Yes, now);
    }
    // The writes of namespaces have the namespace's name here, and all copies the same one.
    let wanted = |namespace: &str| pod.is_none_or(|pod| pod == namespace);
    plan.writes.retain(|object| {
        let mut steps = object.steps.iter();
        steps.any(|step| wanted(&step.write.target().namespace))
    });
    plan.why.retain(|why| why.namespace().is_none_or(wanted));
    Ok(render(
        &format!("{} {name}", KIND.kind),
        &plan,
        &Facts::default(),
        &[],
        None,
    ))
}

/// A list of metadata; servers write an empty one as `null`.
#[derive(Deserialize)]
struct MetadataList {
    items: Option<Vec<MetadataView>>,
}

/// Objects with the name of the copies, by namespace.
#[derive(Default)]
struct Listed(BTreeMap<ObjectKey, Arc<MetadataView>>);

impl Listed {
    async fn read(client: &Client, served: &Served, source: Source<'_>) -> anyhow::Result<Self> {
        let collection = served.collection(source.resource, None)?;
        let field = segment(&format!("metadata.name={}", source.name));
        let path = format!("{collection}?fieldSelector={field}");
        let list: MetadataList = client
            .get_metadata(&path)
            .await
            .with_context(|| format!("cannot list {path}"))?;
        let all = list.items.into_iter().flatten();
        Ok(Self(
            all.map(|copy| (ObjectKey::of(&copy), Arc::new(copy))).collect(),
        ))
    }
}

impl Copies for Listed {
    fn get(&self, _: ResourceId, namespace: &str, name: &str) -> Option<Arc<MetadataView>> {
        self.0.get(&ObjectKey::new(namespace, name)).cloned()
    }
}
