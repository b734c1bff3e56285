//! Explains the plan of a PodProbeMarker: which pods are probed, why others are not, and what the probes report.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use kruise_api::{
    nodepodprobe::NodePodProbe,
    podprobemarker::{KIND, PodProbeMarker},
};
use kruise_frame::explain::{Request, workload::Cluster};
use kruise_plan_kit::{Explain, ResourceId};
use kruise_plan_nodes::podprobemarker::Options;
use kruise_views::NodeView;

use crate::{
    podprobemarker::{Inputs, ListedNodes, SERVERLESS},
    probes::CachedProbes,
};

/// Explains a PodProbeMarker, or one pod of it.
pub fn explain<'r>(request: &'r Request<'r>) -> BoxFuture<'r, anyhow::Result<String>> {
    of_cluster(request).boxed()
}

async fn of_cluster(request: &Request<'_>) -> anyhow::Result<String> {
    let (cluster, marker) = Cluster::read::<Arc<PodProbeMarker>>(request, &KIND).await?;
    let pods = cluster.pods().await?;
    let nodes: Vec<Arc<NodeView>> = cluster.list_all(ResourceId::NODES).await?;
    let probes: Vec<Arc<CachedProbes>> = cluster.list_all(kruise_api::nodepodprobe::RESOURCE).await?;
    let probes: Vec<Arc<NodePodProbe>> = probes
        .iter()
        .filter_map(|cached| cached.object.as_ref().ok().cloned())
        .collect();
    let nodes = ListedNodes(nodes);
    let api_version = cluster.served.api_version(kruise_api::podprobemarker::RESOURCE)?;
    let options = Options {
        marks_serverless: cluster.settings.gates.on(SERVERLESS),
    };
    let (plan, own) = {
        let inputs = Inputs::new(&marker, pods.views.clone(), &nodes, &probes);
        let plan = inputs.plan(&marker, &api_version, options, Explain::Yes);
        (plan, inputs.pods().to_vec())
    };
    cluster.explain(&KIND, (pods, &own), None, plan).await
}
