//! Explains the plan of a BroadcastJob: its course, which nodes get no pod and why, and which pods hold up its end.

use futures::future::{BoxFuture, FutureExt};
use kruise_api::broadcastjob::{BroadcastJob, KIND};
use kruise_frame::explain::{Request, nodes, workload::Cluster};
use kruise_plan_kit::{Memory, ResourceId};
use kruise_plan_workloads::broadcastjob::Explain;

use crate::{
    broadcastjob::{self as controller, Inputs},
    budgets,
};

/// Explains a BroadcastJob, or one node or pod of it.
pub fn explain<'r>(request: &'r Request<'r>) -> BoxFuture<'r, anyhow::Result<String>> {
    of_cluster(request).boxed()
}

async fn of_cluster(request: &Request<'_>) -> anyhow::Result<String> {
    // A line about a node is also about its pods, so they are chosen here.
    let whole = Request {
        pod: None,
        ..*request
    };
    let (cluster, job) = Cluster::read::<BroadcastJob>(&whole, &KIND).await?;
    let pods = cluster.pods().await?;
    let all = cluster.list_all(ResourceId::NODES).await?;
    let options = controller::options(&cluster.settings.gates);
    let inputs = Inputs::new(
        &job,
        all,
        pods.views.clone(),
        budgets::of_cluster(&cluster).await?,
    );
    let api_version = cluster.served.api_version(kruise_api::broadcastjob::RESOURCE)?;
    let (memory, now) = (Memory::default(), request.client.now());
    let mut plan = inputs.plan(&job, &api_version, options, &memory, Explain::Yes, now);
    let own = nodes::narrow(request, &KIND, &mut plan, inputs.pods(), |node| {
        inputs.has_node(node)
    })?;
    cluster.explain(&KIND, (pods, &own), None, plan).await
}
