//! The agents that restart containers: without one on its node, nobody does.
//!
//! An agent may be no pod, as in a playground. So this is asked only about pods whose requests nobody takes
//! up.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kruise_api::{names::agent::LABEL, path::segment};
use kruise_frame::explain::list;
use kruise_runtime::{ApiError, Client};
use kruise_views::{Phase, PodView};

/// Pods that a message names, at most.
const MOST: usize = 3;

/// Which nodes of these pods have no agent, in words; nothing if all have one, or if nobody may look.
pub(super) async fn missing(
    client: &Client,
    namespace: &str,
    pods: &[Arc<PodView>],
) -> anyhow::Result<Option<String>> {
    let place = segment(namespace);
    let label = segment(&LABEL.join("="));
    let path = format!("/api/v1/namespaces/{place}/pods?labelSelector={label}");
    let agents: Vec<Arc<PodView>> = match list(client, &path).await {
        Ok(agents) => agents,
        // The agents are of the installation, which is not everybody's to see.
        Err(error) if is_refusal(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(without(&agents, pods, namespace))
}

fn is_refusal(error: &anyhow::Error) -> bool {
    let status = error.downcast_ref().and_then(ApiError::status);
    status.is_some_and(|status| matches!(status.code, 401 | 403 | 404))
}

fn without(agents: &[Arc<PodView>], pods: &[Arc<PodView>], namespace: &str) -> Option<String> {
    let runs = |agent: &&Arc<PodView>| agent.is_active() && agent.phase == Phase::Running;
    let nodes: BTreeSet<&str> = agents
        .iter()
        .filter(runs)
        .filter_map(|agent| agent.node.as_deref())
        .collect();
    let mut lacking: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for pod in pods {
        if let Some(node) = pod.node.as_deref().filter(|node| !nodes.contains(node)) {
            lacking.entry(node).or_default().push(&pod.name);
        }
    }
    if lacking.is_empty() {
        return None;
    }
    let on: Vec<&str> = lacking.keys().copied().collect();
    let of: Vec<&str> = lacking.values().flatten().copied().collect();
    let of = match of.split_at_checked(MOST) {
        Some((first, more)) if !more.is_empty() => format!("{} and {} more", first.join(", "), more.len()),
        _ => of.join(", "),
    };
    Some(format!(
        "no node agent runs on {}, and nothing restarts the containers of {of}; install it with: kruise manifests --agent; \
         or say --any-agent if it is no pod in {namespace}",
        on.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;
    use serde_json::json;

    use super::*;

    fn pod(name: &str, node: &str, phase: &str) -> Arc<PodView> {
        let pod = json!({"metadata": {"name": name}, "spec": {"nodeName": node}, "status": {"phase": phase}});
        Arc::new(PodView::deserialize(pod).unwrap())
    }

    #[test]
    fn nodes_without_an_agent_that_runs_are_named_with_their_pods() {
        let agents = [pod("a", "n1", "Running"), pod("b", "n2", "Pending")];
        let pods = |nodes: &[&str]| -> Vec<Arc<PodView>> {
            let pod = |(at, node): (usize, &&str)| pod(&format!("web-{at}"), node, "Running");
            nodes.iter().enumerate().map(pod).collect()
        };
        assert_eq!(without(&agents, &pods(&["n1"]), "kruise-system"), None);
        let said = without(&agents, &pods(&["n1", "n3", "n2"]), "kruise-system").unwrap();
        let begin = "no node agent runs on n2, n3, and nothing restarts the containers of web-2, web-1; ";
        assert!(said.starts_with(begin), "{said}");
        let said = without(&[], &pods(&["n1"; 5]), "kruise-system").unwrap();
        assert!(
            said.contains("on n1, and") && said.contains("web-2 and 2 more;"),
            "{said}"
        );
    }
}
