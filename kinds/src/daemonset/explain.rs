//! Explains the plan of a DaemonSet: which pods would be written, which nodes have none and why, and what holds old
//! pods.

use futures::future::{BoxFuture, FutureExt};
use kruise_api::{
    daemonset::{DaemonSet, KIND},
    meta::LabelSelector,
    names::conditions,
};
use kruise_frame::explain::{
    Request, nodes,
    workload::{Cluster, memory_of},
};
use kruise_plan_kit::{ResourceId, Why};
use kruise_plan_workloads::daemonset::Explain;

use crate::pulls::pull_jobs;
use crate::{
    budgets,
    daemonset::{self as controller, Inputs},
};

/// Explains a DaemonSet, or one node or pod of it.
pub fn explain<'r>(request: &'r Request<'r>) -> BoxFuture<'r, anyhow::Result<String>> {
    of_cluster(request).boxed()
}

async fn of_cluster(request: &Request<'_>) -> anyhow::Result<String> {
    // A line about a node is also about its pods, so they are chosen here.
    let whole = Request {
        pod: None,
        ..*request
    };
    let (mut cluster, set) = Cluster::read::<DaemonSet>(&whole, &KIND).await?;
    let pods = cluster.pods().await?;
    let revisions = cluster.revisions().await?;
    let nodes = cluster.list_all(ResourceId::NODES).await?;
    let options = controller::options(&cluster.settings, &cluster.server, &cluster.served);
    let jobs = pull_jobs(&mut cluster, options.images_ahead, &set.metadata.uid).await?;
    let inputs = Inputs::new(&set, nodes, pods.views.clone(), revisions)
        .with_pull_jobs(jobs)
        .with_budgets(budgets::of_cluster(&cluster).await?);
    let memory = memory_of(
        &set.status.conditions,
        (conditions::FAILED_SCALE, ""),
        (conditions::FAILED_UPDATE, ""),
    );
    let api_version = cluster.served.api_version(kruise_api::daemonset::RESOURCE)?;
    let now = request.client.now();
    let mut plan = inputs.plan(&set, &api_version, options, &memory, Explain::Yes, now);
    let own = nodes::narrow(request, &KIND, &mut plan, inputs.pods(), |node| {
        inputs.has_node(node)
    })?;
    plan.why.push(Why::of_set(drained(&set.spec.selector)));
    let lifecycle = set.spec.lifecycle.as_ref();
    cluster.explain(&KIND, (pods, &own), lifecycle, plan).await
}

/// What people meet who drain a node.
fn drained(selector: &LabelSelector) -> String {
    let others = selector.match_labels.iter().next();
    let others = others.map_or_else(
        || "LABEL!=VALUE".to_owned(),
        |(key, value)| format!("{key}!={value}"),
    );
    format!(
        "kubectl drain evicts pods of this set, --ignore-daemonsets or not, and they are created anew at once; before \
         1.34 it refuses their nodes, unless --force is given. Leave them alone with --pod-selector '{others}'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draining_is_explained_with_the_labels_of_the_set() {
        let selector = |labels: &[(&str, &str)]| LabelSelector {
            match_labels: labels
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
            ..LabelSelector::default()
        };
        assert!(drained(&selector(&[("app", "agent")])).contains("--pod-selector 'app!=agent'"));
        assert!(drained(&selector(&[])).contains("--pod-selector 'LABEL!=VALUE'"));
    }
}
