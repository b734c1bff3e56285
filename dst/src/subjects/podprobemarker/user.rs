//! What users do to PodProbeMarkers and pods.

use super::agents;
use super::start::{Edit, RESULT, Start, marker, name, pod, probes};
use crate::rules::prelude::*;
use crate::subjects::nodes;

const PATH: &str = "/apis/apps.kruise.io/v1alpha1/namespaces/default/podprobemarkers";
const PODS_PATH: &str = "/api/v1/namespaces/default/pods";

/// Users of two PodProbeMarkers, and those who run the pods.
pub struct PodProbeMarkerUser {
    /// Pods and nodes at first.
    pub start: Start,
}

impl Users for PodProbeMarkerUser {
    type Edit = Edit;

    fn attend(&self, cluster: &Arc<Cluster>) {
        tokio::spawn(agents::attend(cluster.clone()));
    }

    async fn prepare(&self, cluster: &Arc<Cluster>) {
        nodes::prepare(cluster, self.start.nodes).await;
    }

    async fn create(&self, cluster: &Arc<Cluster>) {
        for _ in 0..self.start.pods {
            more(cluster).await;
        }
        for place in [0, 1] {
            // Until a manager answers for it.
            self.create_marker(cluster, place).await;
        }
    }

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        let path = |place: u8| format!("{PATH}/{}", name(place));
        match edit.clone() {
            Edit::Delete(place) => user::delete(cluster, &path(place)).await,
            Edit::Again(place) => {
                // It may be gone already.
                user::delete(cluster, &path(place)).await;
                self.create_marker(cluster, place).await
            }
            Edit::Probes(place, count) => {
                let patch = json!({"spec": {"probes": probes(place, count)}});
                user::patch(cluster, &path(place), &patch).await
            }
            Edit::Pod => more(cluster).await,
            Edit::Remove(number) => match path_of(cluster, number) {
                Some(path) => user::delete(cluster, &path).await,
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
        }
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
    user::create(cluster, PODS_PATH, &pod(number)).await
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
