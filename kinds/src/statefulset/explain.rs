//! Explains the plan of a StatefulSet: which pods and claims would be written, and what holds the other pods.

use futures::future::{BoxFuture, FutureExt};
use kruise_api::{
    names::{
        conditions,
        statefulset::{CREATE_FAILED, UPDATE_FAILED},
    },
    statefulset::{KIND, StatefulSet},
};
use kruise_frame::explain::{
    Request,
    workload::{Cluster, memory_of},
};
use kruise_plan_kit::ResourceId;
use kruise_plan_workloads::statefulset::Explain;

use crate::pulls::pull_jobs;
use crate::{
    budgets,
    statefulset::{self as controller, Inputs},
};

/// Explains a StatefulSet, or one pod of it.
pub fn explain<'r>(request: &'r Request<'r>) -> BoxFuture<'r, anyhow::Result<String>> {
    of_cluster(request).boxed()
}

async fn of_cluster(request: &Request<'_>) -> anyhow::Result<String> {
    let (mut cluster, set) = Cluster::read::<StatefulSet>(request, &KIND).await?;
    let pods = cluster.pods().await?;
    let claims = cluster.list(ResourceId::CLAIMS).await?;
    let revisions = cluster.revisions().await?;
    let options = controller::options(&cluster.settings, &cluster.server, &cluster.served);
    let jobs = pull_jobs(&mut cluster, options.images_ahead, &set.metadata.uid).await?;
    let classes = if options.resize_claims {
        cluster.list_all(ResourceId::STORAGE_CLASSES).await?
    } else {
        Vec::new()
    };
    let inputs = Inputs::new(&set, pods.views.clone(), claims, revisions)
        .with_classes(classes)
        .with_pull_jobs(jobs)
        .with_budgets(budgets::of_cluster(&cluster).await?);
    let memory = memory_of(
        &set.status.conditions,
        (conditions::FAILED_CREATE_POD, CREATE_FAILED),
        (conditions::FAILED_UPDATE_POD, UPDATE_FAILED),
    );
    let api_version = cluster.served.api_version(kruise_api::statefulset::RESOURCE)?;
    let now = request.client.now();
    let plan = inputs.plan(&set, &api_version, options, &memory, Explain::Yes, now);
    let lifecycle = set.spec.lifecycle.as_ref();
    cluster
        .explain(&KIND, (pods, inputs.pods()), lifecycle, plan)
        .await
}
