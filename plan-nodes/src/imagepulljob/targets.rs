//! The nodes of a job.

use std::{collections::BTreeSet, sync::Arc};

use kruise_api::{
    imagepulljob::{ImagePullJobSpec, NodeSelector},
    nodeimage::NodeImage,
};
use kruise_views::PodView;

/// The NodeImages of the cluster.
pub trait Nodes {
    /// That of a node.
    fn get(&self, name: &str) -> Option<Arc<NodeImage>>;

    /// All.
    fn all(&self) -> Vec<Arc<NodeImage>>;
}

/// The NodeImages of the nodes of a job, in the order in which they are to pull, and the nodes that have none.
/// `pods` are the nodes of the pods that the job selects, in their order.
pub fn targets(
    spec: &ImagePullJobSpec,
    nodes: &dyn Nodes,
    pods: &[&str],
) -> (Vec<Arc<NodeImage>>, Vec<String>) {
    let named = |names: &mut dyn Iterator<Item = &str>| {
        let (mut found, mut missing, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
        for name in names {
            match nodes.get(name) {
                _ if !seen.insert(name.to_owned()) => {}
                Some(node) if !is_going(&node) => found.push(node),
                _ => missing.push(name.to_owned()),
            }
        }
        (found, missing)
    };
    if spec.pod_selector.is_some() {
        return named(&mut pods.iter().copied());
    }
    let selector = spec.selector.as_ref();
    if let Some(names) = selector.and_then(|selector| selector.names.as_ref()) {
        return named(&mut names.iter().map(String::as_str));
    }
    let mut all = nodes.all();
    all.retain(|node| !is_going(node) && selector.is_none_or(|selector| has_labels(selector, node)));
    all.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
    (all, Vec::new())
}

/// Does the job select the node by its name or labels? Jobs that select pods select none.
pub fn matches(spec: &ImagePullJobSpec, node: &NodeImage) -> bool {
    if spec.pod_selector.is_some() {
        return false;
    }
    let Some(selector) = &spec.selector else {
        return true;
    };
    match &selector.names {
        Some(names) => names.contains(&node.metadata.name),
        None => has_labels(selector, node),
    }
}

fn has_labels(selector: &NodeSelector, node: &NodeImage) -> bool {
    selector.labels.matches(&node.metadata.labels)
}

fn is_going(node: &NodeImage) -> bool {
    node.metadata.deletion_timestamp.is_some()
}

/// Of these pods, those that the job selects: active, and on a node.
pub fn of_pods(spec: &ImagePullJobSpec, pods: Vec<Arc<PodView>>) -> Vec<Arc<PodView>> {
    let Some(selector) = &spec.pod_selector else {
        return Vec::new();
    };
    let is_selected = |pod: &PodView| {
        pod.node.is_some() && pod.is_active() && selector.matches_by(|key| pod.labels.get(key))
    };
    pods.into_iter().filter(|pod| is_selected(pod)).collect()
}
