//! Explains the plan of a CloneSet: which pods would be created, updated and deleted, and what holds the others.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use kruise_api::{
    cloneset::{CloneSet, KIND},
    names::conditions,
};
use kruise_frame::explain::{
    Request,
    workload::{Cluster, is_controlled_by, memory_of},
};
use kruise_plan_kit::ResourceId;
use kruise_plan_workloads::cloneset::{Claims, Explain};
use kruise_views::{ClaimView, PodView};

use crate::pulls::pull_jobs;
use crate::{
    budgets,
    cloneset::{self as controller, Inputs},
};

/// Explains a CloneSet, or one pod of it.
pub fn explain<'r>(request: &'r Request<'r>) -> BoxFuture<'r, anyhow::Result<String>> {
    of_cluster(request).boxed()
}

async fn of_cluster(request: &Request<'_>) -> anyhow::Result<String> {
    let (mut cluster, set) = Cluster::read::<CloneSet>(request, &KIND).await?;
    let uid = &*set.metadata.uid;
    let pods = cluster.pods().await?;
    let mut claims: Vec<Arc<ClaimView>> = cluster.list(ResourceId::CLAIMS).await?;
    claims.retain(|claim| is_controlled_by(&**claim, uid));
    let claims = Claims::new(&set, claims, |name| {
        pods.views.iter().any(|pod| *pod.name == *name)
    });
    let mut own: Vec<Arc<PodView>> = pods.views.clone();
    own.retain(|pod| is_controlled_by(&**pod, uid));
    let revisions = cluster.revisions().await?;
    let nodes = cluster.list_all(ResourceId::NODES).await?;
    let options = controller::options(&cluster.settings, &cluster.server, &cluster.served);
    let jobs = pull_jobs(&mut cluster, options.images_ahead, uid).await?;
    let inputs = Inputs::new(&set, own.clone(), claims, revisions, nodes)
        .with_pull_jobs(jobs)
        .with_budgets(budgets::of_cluster(&cluster).await?);
    let failed = |kind| (kind, "");
    let memory = memory_of(
        &set.status.conditions,
        failed(conditions::FAILED_SCALE),
        failed(conditions::FAILED_UPDATE),
    );
    let api_version = cluster.served.api_version(kruise_api::cloneset::RESOURCE)?;
    let now = request.client.now();
    let plan = inputs.plan(&set, &api_version, options, &memory, Explain::Yes, now);
    let lifecycle = set.spec.lifecycle.as_ref();
    cluster.explain(&KIND, (pods, &own), lifecycle, plan).await
}
