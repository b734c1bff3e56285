//! Explains a ContainerRecreateRequest: what it waits for, and how each container is.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use kruise_api::{
    containerrecreaterequest::{ContainerRecreateRequest, KIND},
    names::containerrecreaterequest::POD_UID,
};
use kruise_frame::explain::{Request, workload::Cluster};
use kruise_plan_kit::{Explain, Memory, Need, ResourceId};

use crate::containerrecreaterequest::Inputs;
use kruise_runtime::parsed::Parsed;

/// Explains a ContainerRecreateRequest.
pub fn explain<'r>(request: &'r Request<'r>) -> BoxFuture<'r, anyhow::Result<String>> {
    of_cluster(request).boxed()
}

async fn of_cluster(request: &Request<'_>) -> anyhow::Result<String> {
    let (cluster, object) = Cluster::read::<ContainerRecreateRequest>(request, &KIND).await?;
    let pods = cluster.pods().await?;
    let all: Vec<Arc<Parsed<ContainerRecreateRequest>>> = cluster
        .list(kruise_api::containerrecreaterequest::RESOURCE)
        .await?;
    let mut views = pods.views.iter();
    let pod = views.find(|pod| *pod.name == *object.spec.pod_name).cloned();
    // What was listed just now is not asked for again.
    let (namespace, name) = (request.namespace.to_owned(), object.spec.pod_name.clone());
    let mut memory = Memory::default();
    memory
        .read
        .insert(Need::Live(ResourceId::PODS, namespace, name), None);
    let now = request.client.now();
    let inputs = Inputs::new(pod.clone(), others(&object, &all));
    let plan = inputs.plan(&object, &memory, Explain::Yes, now);
    let own: Vec<_> = pod.into_iter().collect();
    cluster.explain(&KIND, (pods, &own), None, plan).await
}

/// Names of the other requests for the same pod that have not ended, the oldest first.
fn others(request: &ContainerRecreateRequest, all: &[Arc<Parsed<ContainerRecreateRequest>>]) -> Vec<String> {
    let uid = request.metadata.labels.get(POD_UID);
    let is_other = |other: &&ContainerRecreateRequest| {
        other.metadata.uid != request.metadata.uid
            && other.metadata.labels.get(POD_UID) == uid
            && !other.has_ended()
    };
    let mut others: Vec<_> = all
        .iter()
        .filter_map(|cached| cached.object.as_ref().ok())
        .filter(is_other)
        .collect();
    others.sort_by_key(|other| (other.metadata.creation_timestamp, &other.metadata.name));
    others
        .into_iter()
        .map(|other| other.metadata.name.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn other_requests_for_the_pod_that_have_not_ended_are_named_the_oldest_first() {
        let request = |name: &str, uid: &str, minute: u8, phase: &str| {
            let object = json!({
                "apiVersion": "apps.kruise.io/v1beta1", "metadata": {"name": name, "uid": name,
                    "creationTimestamp": format!("2026-01-01T00:0{minute}:00Z"), "labels": {(POD_UID): uid}},
                "spec": {"podName": "cart-0"}, "status": {"phase": phase}});
            let cached: Parsed<ContainerRecreateRequest> = serde_json::from_str(&object.to_string()).unwrap();
            Arc::new(cached)
        };
        let all = [
            request("self", "p1", 1, ""),
            request("late", "p1", 3, "Pending"),
            request("early", "p1", 0, "Recreating"),
            request("ended", "p1", 0, "Completed"),
            request("of-another", "p2", 0, "Recreating"),
        ];
        let own = all[0].object.as_ref().unwrap();
        assert_eq!(others(own, &all), ["early", "late"]);
    }
}
