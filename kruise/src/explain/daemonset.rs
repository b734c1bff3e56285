//! Explains the plan of a DaemonSet: which pods would be written, which nodes have none and why, and what holds old pods.

use anyhow::bail;
use futures::future::{BoxFuture, FutureExt};
use kruise_api::{
    daemonset::{DaemonSet, KIND},
    meta::LabelSelector,
    names::conditions,
};
use kruise_plan_kit::{Plan, ResourceId, Why, Write};
use kruise_plan_workloads::daemonset::Explain;
use kruise_views::PodView;
use serde_json::Value;

use super::{
    Request,
    workload::{Cluster, memory_of},
};
use crate::controllers::daemonset::{self as controller, Inputs};

/// Explains a DaemonSet, or one node or pod of it.
pub(crate) fn explain<'r>(request: &'r Request<'r>) -> BoxFuture<'r, anyhow::Result<String>> {
    of_cluster(request).boxed()
}

async fn of_cluster(request: &Request<'_>) -> anyhow::Result<String> {
    // A node stands for its pods, so they are chosen here.
    let whole = Request {
        pod: None,
        ..*request
    };
    let (cluster, set) = Cluster::read::<DaemonSet>(&whole, &KIND).await?;
    let pods = cluster.pods().await?;
    let revisions = cluster.revisions().await?;
    let nodes = cluster.list_all(ResourceId::NODES).await?;
    let options = controller::options(&cluster.settings, &cluster.server, &cluster.served);
    let jobs = cluster.pull_jobs(options.images_ahead, &set.metadata.uid).await?;
    let inputs = Inputs::new(&set, nodes, pods.views.clone(), revisions)
        .with_pull_jobs(jobs)
        .with_budgets(cluster.budgets().await?);
    let memory = memory_of(
        &set.status.conditions,
        (conditions::FAILED_SCALE, ""),
        (conditions::FAILED_UPDATE, ""),
    );
    let api_version = cluster.served.api_version(ResourceId::DAEMONSETS)?;
    let now = request.client.now();
    let mut plan = inputs.plan(&set, &api_version, options, &memory, Explain::Yes, now);
    let mut own = inputs.pods().to_vec();
    if let Some(wanted) = request.pod {
        let is_wanted = |pod: &PodView| *pod.name == *wanted || node_of(pod) == Some(wanted);
        own.retain(|pod| is_wanted(pod));
        let kept: Vec<&str> = own.iter().map(|pod| &*pod.name).collect();
        keep(&mut plan, wanted, &kept);
        let is_known = !kept.is_empty() || inputs.has_node(wanted);
        if !is_known && plan.writes.is_empty() {
            bail!(
                "{} {}/{} has no pod {wanted}, and there is no such node",
                KIND.kind,
                request.namespace,
                request.name
            );
        }
    }
    plan.why.push(Why::of_set(drained(&set.spec.selector)));
    let lifecycle = set.spec.lifecycle.as_ref();
    cluster.explain(&KIND, (pods, &own), lifecycle, plan).await
}

fn node_of(pod: &PodView) -> Option<&str> {
    pod.node.as_deref().or(pod.pinned.as_deref())
}

/// Leaves in the plan what is about these pods, and about the node or pod of this name.
fn keep(plan: &mut Plan, wanted: &str, pods: &[&str]) {
    let is_new = |write: &Write| match write {
        Write::Create { body, .. } => body.set.iter().any(|(_, value)| names(value, wanted)),
        Write::Patch { .. } | Write::Delete { .. } => false,
    };
    plan.writes.retain(|object| {
        let mut steps = object.steps.iter();
        steps.any(|step| {
            let name = &*step.write.target().name;
            pods.contains(&name) || name == wanted || is_new(&step.write)
        })
    });
    plan.why.retain(|why| {
        let about = why.node().unwrap_or(&why.about);
        about.is_empty() || about == wanted || pods.contains(&about)
    });
}

/// Is this, or does it hold, the text?
fn names(value: &Value, wanted: &str) -> bool {
    match value {
        Value::String(text) => text == wanted,
        Value::Array(items) => items.iter().any(|item| names(item, wanted)),
        Value::Object(members) => members.values().any(|member| names(member, wanted)),
        _ => false,
    }
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

    #[test]
    fn only_what_is_about_the_node_is_kept() {
        let mut plan = Plan {
            why: vec![
                Why::of_set("wants pods"),
                Why::of_node("n1", "gets no pod"),
                Why::of_node("n2", "gets no pod"),
                Why::new("agent-a", "is available"),
                Why::new("agent-b", "is available"),
            ],
            ..Plan::default()
        };
        keep(&mut plan, "n1", &["agent-b"]);
        let kept: Vec<&str> = plan
            .why
            .iter()
            .map(|why| why.node().unwrap_or(&why.about))
            .collect();
        assert_eq!(kept, ["", "n1", "agent-b"]);
    }
}
