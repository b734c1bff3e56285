//! What users do to PodProbeMarkers and pods.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use kruise_sim::{Method, Request};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    agents,
    start::{Edit, RESULT, Start, marker, name, pod, probes},
};
use crate::engine::{
    cluster::Cluster,
    resource::PODS,
    subject::User,
    user::{self, insist},
};
use crate::subjects::nodes;

const PATH: &str = "/apis/apps.kruise.io/v1alpha1/namespaces/default/podprobemarkers";
const PODS_PATH: &str = "/api/v1/namespaces/default/pods";

/// Users of two PodProbeMarkers, and those who run the pods.
pub struct PodProbeMarkerUser {
    /// Pods and nodes at first.
    pub start: Start,
}

impl User for PodProbeMarkerUser {
    fn attend(&self, cluster: &Arc<Cluster>) {
        tokio::spawn(agents::attend(cluster.clone()));
    }

    fn prepare<'a>(&'a self, cluster: &'a Arc<Cluster>) -> BoxFuture<'a, ()> {
        nodes::prepare(cluster, self.start.nodes).boxed()
    }

    fn create<'a>(&'a self, cluster: &'a Arc<Cluster>) -> BoxFuture<'a, ()> {
        async move {
            for _ in 0..self.start.pods {
                more(cluster).await;
            }
            for place in [0, 1] {
                // Until a manager answers for it.
                self.create_marker(cluster, place).await;
            }
        }
        .boxed()
    }

    fn edit<'a>(
        &'a self,
        cluster: &'a Arc<Cluster>,
        change: &'a Value,
    ) -> BoxFuture<'a, anyhow::Result<bool>> {
        async move {
            let path = |place: u8| format!("{PATH}/{}", name(place));
            Ok(match Edit::deserialize(change)? {
                Edit::Delete(place) => {
                    insist(cluster, Request::new(Method::Delete, &path(place), None)).await
                }
                Edit::Again(place) => {
                    // It may be gone already.
                    insist(cluster, Request::new(Method::Delete, &path(place), None)).await;
                    self.create_marker(cluster, place).await
                }
                Edit::Probes(place, count) => {
                    let patch = json!({"spec": {"probes": probes(place, count)}});
                    user::patch(cluster, &path(place), &patch).await
                }
                Edit::Pod => more(cluster).await,
                Edit::Remove(number) => match path_of(cluster, number) {
                    Some(path) => insist(cluster, Request::new(Method::Delete, &path, None)).await,
                    None => false,
                },
                Edit::Label(number, on) => {
                    let app = if on { "game" } else { "other" };
                    touch(cluster, number, &json!({"metadata": {"labels": {"app": app}}})).await
                }
                Edit::Result(number, state) => {
                    let patch = json!({"metadata": {"annotations": {(RESULT): state}}});
                    touch(cluster, number, &patch).await
                }
            })
        }
        .boxed()
    }
}

impl PodProbeMarkerUser {
    async fn create_marker(&self, cluster: &Arc<Cluster>, place: u8) -> bool {
        let count = self.start.probes.get(usize::from(place)).copied();
        let marker = marker(place, count.unwrap_or(1));
        user::create_once_free(cluster, PATH, &marker).await
    }
}

/// Creates a pod.
async fn more(cluster: &Arc<Cluster>) -> bool {
    let number = cluster.look(|state| state.mirror.of(PODS).objects.len());
    insist(cluster, Request::new(Method::Post, PODS_PATH, Some(&pod(number)))).await
}

/// The path of the pod of a number among those that are there.
fn path_of(cluster: &Arc<Cluster>, number: u8) -> Option<String> {
    let pod = cluster.look(|state| state.object_at(PODS, number))?;
    Some(format!("{PODS_PATH}/{}", pod.name))
}

/// Changes the pod of a number among those that are there.
async fn touch(cluster: &Arc<Cluster>, number: u8, patch: &Value) -> bool {
    match path_of(cluster, number) {
        Some(path) => user::patch(cluster, &path, patch).await,
        None => false,
    }
}
