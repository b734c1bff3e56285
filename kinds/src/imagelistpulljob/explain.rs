//! Explains the plan of an ImageListPullJob: which jobs it has, and how far each is.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use kruise_api::imagelistpulljob::{ImageListPullJob, KIND};
use kruise_frame::explain::{Request, workload::Cluster};
use kruise_plan_kit::{Explain, Memory};

use crate::{imagelistpulljob::Inputs, images::CachedPullJob};

/// Explains a list of images.
pub fn explain<'r>(request: &'r Request<'r>) -> BoxFuture<'r, anyhow::Result<String>> {
    of_cluster(request).boxed()
}

async fn of_cluster(request: &Request<'_>) -> anyhow::Result<String> {
    let (cluster, list) = Cluster::read::<ImageListPullJob>(request, &KIND).await?;
    let jobs: Vec<Arc<CachedPullJob>> = cluster.list(kruise_api::imagepulljob::RESOURCE).await?;
    let inputs = Inputs::new(&list, jobs);
    let api_version = cluster
        .served
        .api_version(kruise_api::imagelistpulljob::RESOURCE)?;
    let (memory, now) = (Memory::default(), request.client.now());
    let plan = inputs.plan(&list, &api_version, &memory, Explain::Yes, now);
    let pods = cluster.pods().await?;
    cluster.explain(&KIND, (pods, &[]), None, plan).await
}
