//! Explains the plan of an EphemeralJob: which pods get its containers, what the others wait for, and how far each is.

use futures::future::{BoxFuture, FutureExt};
use kruise_api::ephemeraljob::{EphemeralJob, KIND};
use kruise_frame::explain::{Request, workload::Cluster};
use kruise_plan_kit::{Explain, Memory};

use crate::ephemeraljob::Inputs;

/// Explains an EphemeralJob, or one pod of it.
pub fn explain<'r>(request: &'r Request<'r>) -> BoxFuture<'r, anyhow::Result<String>> {
    of_cluster(request).boxed()
}

async fn of_cluster(request: &Request<'_>) -> anyhow::Result<String> {
    let (cluster, job) = Cluster::read::<EphemeralJob>(request, &KIND).await?;
    let pods = cluster.pods().await?;
    let inputs = Inputs::new(&job, pods.views.clone());
    let api_version = cluster.served.api_version(kruise_api::ephemeraljob::RESOURCE)?;
    let (memory, now) = (Memory::default(), request.client.now());
    let plan = inputs.plan(&job, &api_version, &memory, Explain::Yes, now);
    cluster.explain(&KIND, (pods, inputs.pods()), None, plan).await
}
